"""The command line, as a user runs it: what it prints, what it writes, how it fails."""

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from ndpool.__main__ import COMMANDS, main

PNG = b"\x89PNG\r\n\x1a\n"


def ndpool(*arguments: str, cwd: Path, setup: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own, where a warning is an error; `setup` is code that runs first."""
    code = f"{setup}\nimport sys\nfrom ndpool.__main__ import main\nsys.exit(main())"
    start = ["-m", "ndpool"] if not setup else ["-c", code]
    return subprocess.run(
        [sys.executable, "-W", "error", *start, *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        timeout=300,
        check=False,
    )


def need_extras() -> None:
    pytest.importorskip("nibabel")
    pytest.importorskip("matplotlib")


def test_commands() -> None:
    assert [command.name for command in COMMANDS] == ["demo", "backends"]


def test_demo(tmp_path: Path) -> None:
    need_extras()
    done = ndpool("demo", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    for expected in (
        "example4d.nii.gz",
        "shape (128, 96, 24, 2)",
        "WindowPlan (128, 96, 24, 2) -> (64, 48, 12, 2)",
        "axis 1: 96 -> 48, kernel 3, stride 2, padding (1, 1) wrap",
        # The largest element of the series, in the millimetres of its affine.
        "1162 at (  -10.1,    61.0,     8.6) mm, 0 s: voxel (64, 49, 0), volume 0",
        "engine",
        " ms",
        "MiB",
        "picture  ndpool_demo.png",
    ):
        assert expected in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["ndpool_demo.png"]
    picture = (tmp_path / "ndpool_demo.png").read_bytes()
    assert picture.startswith(PNG)
    assert len(picture) > 10_000


def test_demo_output(tmp_path: Path) -> None:
    need_extras()
    (tmp_path / "here").mkdir()
    done = ndpool("demo", "--output", "here/slice.png", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "here" / "slice.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize("module", ["nibabel", "matplotlib"])
def test_demo_without_an_extra(module: str, tmp_path: Path) -> None:
    done = ndpool("demo", cwd=tmp_path, setup=f"import sys\nsys.modules[{module!r}] = None")
    # Without nibabel there is nothing to load, whether or not matplotlib is installed.
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("ndpool demo: ")
    assert "is not installed" in line
    assert 'pip install "ndpool[nifti,plot]"' in line
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("before", [None, b"an older picture"])
def test_a_failed_write_leaves_no_part(before: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need_extras()
    target = tmp_path / "picture.png"
    if before is not None:
        target.write_bytes(before)

    def full(source: Path, _: Path) -> None:
        assert source.stat().st_size > 0
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(SystemExit, match=r"ndpool demo: cannot write '.*picture\.png': No space left on device"):
        main(["demo", "--output", str(target)])
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [before] * (before is not None)


@pytest.mark.parametrize("folder", ["nowhere", "file"])
def test_no_such_folder(folder: str, tmp_path: Path) -> None:
    need_extras()
    (tmp_path / "file").touch()
    done = ndpool("demo", "--output", f"{folder}/slice.png", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith(f"ndpool demo: cannot write '{folder}")
    assert len(done.stderr.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_backends(tmp_path: Path) -> None:
    done = ndpool("backends", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "numpy" in done.stdout
    assert "generic" in done.stdout


def test_version(tmp_path: Path) -> None:
    done = ndpool("--version", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"ndpool {version('ndpool')}\n", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fetch",), "invalid choice: 'fetch'"),
        ((), "the following arguments are required: COMMAND"),
        (("demo", "--size", "3"), "unrecognized arguments: --size 3"),
        (("demo", "--output", "."), "argument --output: must name a file, got '.'"),
    ],
)
def test_a_wrong_command_line(arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err
