"""Saves beside a disk that fails: every call that changes files fails once, with each of two errors."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import processes
from processes import PRELUDE

SOURCE = Path(processes.__file__).with_name("failing_calls.c")
CC = shutil.which("cc")

pytestmark = pytest.mark.skipif(
    CC is None or sys.platform != "linux", reason="calls are replaced by a preloaded library, which needs a C compiler"
)

PROGRAM = """
import ctypes
import errno
sys.path[:0] = sys.argv[1].split(":")
from test_saving import SAVES

calls = ctypes.CDLL(sys.argv[2])
for name, (save, load, ending) in SAVES.items():
    path = f"file{ending}"
    save(path, 1)
    for error in (errno.EIO, errno.ENOSPC):
        failures, n = 0, 1
        while True:
            calls.arm(n, error)
            try:
                save(path, 2)
                is_saved = True
            except OSError:
                is_saved = False
            calls.disarm()
            if calls.count() < n:
                break
            failures += not is_saved
            assert load(path) == 1 + is_saved, (name, n, error)
            assert os.listdir() == [path], (name, n, error)
            if is_saved:
                save(path, 1)
            n += 1
        assert is_saved and load(path) == 2, name
        # To make the file, to write, to put it on the disk, to give it its name.
        assert failures >= 4, (name, failures)
        save(path, 1)
    os.remove(path)
print(len(SAVES))
"""


def test_every_call_that_fails_leaves_the_old_file(tmp_path):
    library, folder = tmp_path / "failing_calls.so", tmp_path / "files"
    folder.mkdir()
    subprocess.run([CC, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", SOURCE, "-o", library, "-ldl"], check=True)
    places = f"{Path(__file__).parent}:{SOURCE.parent}"
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + PROGRAM, places, str(library)],
        capture_output=True,
        text=True,
        timeout=processes.SECONDS,
        cwd=folder,
        env={**os.environ, "LD_PRELOAD": str(library)},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout) >= 10
