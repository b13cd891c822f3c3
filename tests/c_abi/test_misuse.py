"""Every function of the header with every parameter wrong in turn: a status and a message, no crash.

`tests/support/c_misuse.py` makes the calls.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import mxnet as mx
from c_library import HEADER, ROOT, library


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a process that makes the calls has to say."""
    folder = tmp_path_factory.mktemp("misuse")
    net = mx.gluon.nn.Dense(3, in_units=3)
    net.initialize()
    net.hybridize()
    net(mx.np.zeros((2, 3)))
    net.export(folder / "net")
    support = ROOT / "tests" / "support"
    done = subprocess.run(
        [
            sys.executable,
            "-X",
            "faulthandler",
            str(support / "c_misuse.py"),
            str(library()),
            str(HEADER / "mxnet.h"),
            ".",
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(support)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"the process ended with {done.returncode}:\n{done.stderr[-2000:]}"
    return json.loads(done.stdout)


def test_wrong_calls_of_every_function_are_errors(outcome: dict[str, Any]) -> None:
    assert not outcome["wrong"]
    assert outcome["calls"] > 5 * outcome["params"]


def test_every_function_of_the_header_was_called_and_succeeds_with_right_values(outcome: dict[str, Any]) -> None:
    declared = set(re.findall(r"\b(mx_\w+)\(", Path(HEADER / "mxnet.h").read_text()))
    assert set(outcome["functions"]) == declared
    failed = {function for function, status in outcome["right"].items() if status}
    assert failed == {"mx_load_module"}  # the file that it gets is no module
