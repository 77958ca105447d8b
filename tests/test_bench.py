"""The benchmark suite imports and is well formed; nothing is measured here."""

import os
import subprocess
import sys
from pathlib import Path

SUITE = Path(__file__).parent.parent / "asv_bench"


def asv(*args, home):
    # asv keeps a file in the home folder.
    environment = {**os.environ, "HOME": str(home)}
    command = [sys.executable, "-m", "asv", *args, "-E", f"existing:{sys.executable}"]
    return subprocess.run(command, cwd=SUITE, env=environment, capture_output=True, text=True, check=False)


def test_asv_check(tmp_path):
    done = asv("check", home=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
