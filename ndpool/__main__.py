"""The command line: ``ndpool COMMAND``, or ``python -m ndpool COMMAND``.

Reads arguments and exits; what a command does is in a module of its own. Another command is one more entry of
`COMMANDS`.
"""

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from . import __version__, backends
from .reductions import RULES


class Command(NamedTuple):
    """A subcommand.

    Attributes
    ----------
    name, summary : str
        What the user types, and a line on what it does.
    add_arguments : callable
        Declares the arguments on the parser of this command.
    run : callable
        Does the work with the parsed arguments, and returns the exit status.
    """

    name: str
    summary: str
    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], int]


def _file(text: str) -> Path:
    path = Path(text)
    if not path.name or path.is_dir():
        raise ArgumentTypeError(f"must name a file, got {text!r}")
    return path


def _demo_arguments(parser: ArgumentParser) -> None:
    picture = "the picture to write (default: %(default)s)"
    parser.add_argument("--output", metavar="PNG", type=_file, default="ndpool_demo.png", help=picture)


def _demo(args: Namespace) -> int:
    from . import demo

    return demo.run(args.output)


def _no_arguments(parser: ArgumentParser) -> None:
    pass


def _backends(_: Namespace) -> int:
    rows = [("arrays", "engine", "reductions", "where=", "how it works")]
    for arrays, engines in backends().items():
        for engine, record in engines.items():
            reductions = " ".join(name for name in RULES if name in record.reductions)
            masks = "yes" if record.where else "no"
            rows.append(("any other" if arrays == "*" else arrays, engine, reductions, masks, record.how))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    print(f"ndpool {__version__}; the first engine of an array that can take a call does it, else generic\n")
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    return 0


COMMANDS: Final = (
    Command("demo", "pool a real 4-D MRI series, print what was done, write a picture", _demo_arguments, _demo),
    Command("backends", "list what is installed, and what each engine can do", _no_arguments, _backends),
)


def parser() -> ArgumentParser:
    """Return the parser of the whole command line."""
    top = ArgumentParser(prog="ndpool", description="Pooling over windows on any axes of an array.")
    top.add_argument("--version", action="version", version=f"ndpool {__version__}")
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    for command in COMMANDS:
        sub = commands.add_parser(command.name, help=command.summary, description=command.summary)
        command.add_arguments(sub)
        sub.set_defaults(run=command.run)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv`, by default that of the process, and return the exit status."""
    args = parser().parse_args(argv)
    status: int = args.run(args)
    return status


if __name__ == "__main__":
    sys.exit(main())
