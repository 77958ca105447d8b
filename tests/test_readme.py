"""Every ``python`` block of README.md and docs/ runs, in one namespace a file, and gives what the page says.

After an expression, ``# -> value`` is its repr and ``# raises Error: words`` the error it raises, on the same line or
the next. A ``text`` block right after a ``python`` block is what that block prints.
"""

import ast
import builtins
import contextlib
import io
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
# The fewest blocks and stated values of each page: a test that finds none would pass.
LEAST = {"README.md": (9, 19), "docs/answers.md": (18, 49)}
PAGES = ["README.md", *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("**/*.md"))]

BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```$(?:\n*^```text\n(?P<printed>.*?)^```$)?", re.MULTILINE | re.DOTALL)
STATED = re.compile(r"\s*# (?P<kind>->|raises) (?P<text>.*)")


class Block(NamedTuple):
    """A piece of code, the line before its first, and what it should print, where the page says so."""

    code: str
    line: int
    printed: str | None


def blocks_of(text: str) -> list[Block]:
    return [
        Block(match["code"], text.count("\n", 0, match.start("code")), match["printed"])
        for match in BLOCK.finditer(text)
    ]


def after(code: str, node: ast.stmt) -> str:
    """Return the source that follows a statement; the columns of `ast` count bytes."""
    lines = code.encode().splitlines(keepends=True)
    assert node.end_lineno is not None
    return b"".join([lines[node.end_lineno - 1][node.end_col_offset :], *lines[node.end_lineno :]]).decode()


def check(expression: ast.Expr, kind: str, text: str, namespace: dict[str, Any], where: str) -> None:
    code = compile(ast.Expression(expression.value), where, "eval")
    if kind == "->":
        assert repr(eval(code, namespace)) == text, where
        return
    name, _, words = text.partition(": ")
    with pytest.raises(getattr(builtins, name), match=re.escape(words)):
        eval(code, namespace)


def run_block(block: Block, namespace: dict[str, Any], page: str) -> int:
    """Run a block, and return the number of values that it states."""
    stated = 0
    tree = ast.parse(block.code, page)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for node in tree.body:
            found = STATED.match(after(block.code, node))
            ast.increment_lineno(node, block.line)
            if found and isinstance(node, ast.Expr):
                check(node, found["kind"], found["text"], namespace, f"{page}:{node.lineno}")
                stated += 1
            else:
                exec(compile(ast.Module([node], []), page, "exec"), namespace)
    assert stated == len(re.findall(r"# (?:->|raises) ", block.code)), f"{page}: a value that follows no expression"
    if block.printed is not None:
        assert printed.getvalue() == block.printed, f"{page}:{block.line}"
    return stated


def test_every_page_is_there() -> None:
    assert set(LEAST) <= set(PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = blocks_of(text)
    assert len(blocks) == len(re.findall(r"^\s*```python", text, re.MULTILINE)), "a block that the test does not see"
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "page"}
    stated = sum(run_block(block, namespace, page) for block in blocks)
    least_blocks, least_stated = LEAST.get(page, (0, 0))
    assert len(blocks) >= least_blocks
    assert stated >= least_stated


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("1 + 1  # -> 3\n", r"page\.md:11"),
        ("1 + 1\n# -> 3\n", r"page\.md:11"),
        ("x = 2  # -> 2\n", "follows no expression"),
        ("int('x')  # raises ValueError: another message\n", "another"),
        ("1 + 1  # raises ValueError: words\n", "DID NOT RAISE"),
    ],
)
def test_a_wrong_page_fails(code: str, message: str) -> None:
    with pytest.raises((AssertionError, pytest.fail.Exception), match=message):
        run_block(Block(code, 10, None), {}, "page.md")


def test_what_is_printed_is_compared() -> None:
    (block,) = blocks_of("```python\nprint(1)\n```\n\n```text\n2\n```\n")
    assert block == Block("print(1)\n", 1, "2\n")
    with pytest.raises(AssertionError, match=r"page\.md:1"):
        run_block(block, {}, "page.md")
