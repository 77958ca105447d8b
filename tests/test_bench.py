"""The benchmark suite and the comparison with the peers run; what they measure here says nothing."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ndpool as ndp

SUITE = Path(__file__).parent.parent / "asv_bench"


def asv(*args, home):
    # asv keeps a file in the home folder.
    environment = {**os.environ, "HOME": str(home)}
    command = [sys.executable, "-m", "asv", *args, "-E", f"existing:{sys.executable}"]
    return subprocess.run(command, cwd=SUITE, env=environment, capture_output=True, text=True, check=False)


def test_asv_check(tmp_path):
    done = asv("check", home=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def versus(monkeypatch):
    spec = importlib.util.spec_from_file_location("versus", SUITE / "versus.py")
    module = importlib.util.module_from_spec(spec)
    # A dataclass looks its module up.
    monkeypatch.setitem(sys.modules, "versus", module)
    spec.loader.exec_module(module)
    # torch.compile takes longer than all the tests of this file.
    monkeypatch.delitem(module.PEERS, "torch compiled")
    monkeypatch.setattr(module, "PAUSE", 0)
    # What the script sets for JAX is undone after the test.
    for name, value in module.ONE_JAX_THREAD.items():
        monkeypatch.setenv(name, value)
    # The numbers of threads belong to the process.
    before = ndp.get_num_threads()
    torch = sys.modules.get("torch")
    before_torch = torch.get_num_threads() if torch else 0
    yield module
    ndp.set_num_threads(before)
    if torch:
        torch.set_num_threads(before_torch)


def tiny_rows(versus):
    """Each way in which a peer prepares a row, on a small array."""
    row = versus.Row
    return (
        row((2, 3, 8, 8), (2, 3), 2, 2),
        row((2, 3, 8, 8), (2, 3), 3, 1, 1, indices=True),
        row((2, 3, 8, 8), (2, 3), 3, 1, 1, mode="wrap"),
        row((2, 8, 8, 3), (1, 2), 3, 1, 1),
        row((6, 5, 4), (0,), 3, 1, 1),
        row((2, 4, 5, 5), (1,), 2, 2),
        row((1, 2, 4, 4, 6, 6), (2, 3, 4, 5), 3, 1, 1),
        row((6, 8, 8), (0, 1, 2), 3, 2, 1, dtype="int16"),
        row((9, 9), (0, 1), 3, 1, 1, dtype="uint8", calls=3),
        row((2, 3, 8, 8), (2, 3), 3, 1, 1, reduction="mean"),
        row((12, 12), (0, 1), 5, 1, reduction="mean"),
    )


def test_versus(versus, monkeypatch, tmp_path, capsys):
    rows = tiny_rows(versus)
    monkeypatch.setattr(versus, "ROWS", rows)
    out, picture = tmp_path / "speed.md", tmp_path / "speed.png"
    arguments = ["--rounds", "1", "--threads", "1", "--out", str(out), "--chart", str(picture)]
    assert versus.main(arguments) == 0, capsys.readouterr().err
    written = out.read_text(encoding="utf-8")
    table = [line for line in written.splitlines() if line.startswith("|")]
    assert table == capsys.readouterr().out.splitlines()
    assert len(table) == 2 + len(rows)
    assert len({line.count("|") for line in table}) == 1
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["speed.md", "speed.png"]

    # What others wrote around the markers stays.
    out.write_text(f"mine\n{written}theirs\n", encoding="utf-8")
    assert versus.main([*arguments, "--rows", "uint8", "--threads", "1,2"]) == 0
    again = out.read_text(encoding="utf-8")
    assert again.startswith("mine\n# Speed")
    assert again.endswith("theirs\n")
    assert len([line for line in again.splitlines() if line.startswith("|")]) == 4

    out.write_text("a page of somebody else's", encoding="utf-8")
    with pytest.raises(SystemExit):
        versus.main(arguments)
    assert out.read_text(encoding="utf-8") == "a page of somebody else's"


def test_versus_leaves_out_what_differs(versus, monkeypatch, tmp_path, capsys):
    def wrong(row, _x, _threads):
        return versus.Job(lambda: np.zeros(row.output_shape, row.dtype), lambda result: (result,))

    def broken(_row, _x, _threads):
        raise OverflowError("too deep")

    monkeypatch.setattr(versus, "ROWS", tiny_rows(versus)[:1])
    monkeypatch.setattr(versus, "PEERS", {"wrong": versus.Peer(wrong, ()), "broken": versus.Peer(broken, ())})
    out = tmp_path / "speed.md"
    arguments = ["--rounds", "1", "--threads", "1", "--out", str(out), "--chart", str(tmp_path / "speed.png")]
    assert versus.main(arguments) == 1
    errors = capsys.readouterr().err
    assert "wrong is left out: Arrays are not equal" in errors
    assert "broken is left out: OverflowError: too deep" in errors
    cells = [line for line in out.read_text(encoding="utf-8").splitlines() if line.startswith("|")][2].split("|")
    assert [cell.strip() for cell in cells[6:9]] == ["", "", ""]  # wrong, broken, best peer / ours


def test_versus_writes_whole_or_not_at_all(versus, monkeypatch, tmp_path):
    out = tmp_path / "speed.md"
    out.write_text("old", encoding="utf-8")
    write = Path.write_bytes

    def interrupted(path, content):
        write(path, content[:2])
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_bytes", interrupted)
    with pytest.raises(KeyboardInterrupt):
        versus.write_whole(out, b"new page")
    assert out.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [out]
