"""`python -m mxnet.launch`: what it starts, and what it says if it cannot."""

import json
import os
import subprocess
import sys

import pytest

from mxnet import launch as launcher
from ranks import launch, succeed

SHOW = """
import json, os, sys
import mxnet as mx
store = mx.kv.create("dist_sync")
found = [store.rank, store.num_workers, sys.argv, sys.path[0], __name__, mx.config.num_threads, "mpi4py" in sys.modules]
print("shown " + json.dumps(found) + "\\n", end="", flush=True)  # in one piece
"""


def shown(text):
    return sorted(json.loads(line.removeprefix("shown ")) for line in text.splitlines() if line.startswith("shown "))


def test_a_script_is_the_main_program_of_each_process(tmp_path):
    script = tmp_path / "show.py"
    script.write_text(SHOW)
    hosts = tmp_path / "hosts"
    hosts.write_text("localhost:2\n")
    text = succeed(2, script, "--epochs", "3", "-n", options=["--hostfile", str(hosts)])
    rest = [[str(script), "--epochs", "3", "-n"], str(tmp_path), "__main__", 1, True]
    assert shown(text) == [[0, 2, *rest], [1, 2, *rest]]


def test_one_process_needs_no_mpi_and_the_environment_chooses_threads(tmp_path):
    script = tmp_path / "show.py"
    script.write_text(SHOW)
    text = succeed(1, script, environment={"MXNET_NUM_THREADS": "2"})
    assert shown(text) == [[0, 1, [str(script)], str(tmp_path), "__main__", 2, False]]


def test_a_module_is_started_by_its_name(tmp_path):
    (tmp_path / "show.py").write_text(SHOW)
    done = subprocess.run(
        [sys.executable, "-m", "mxnet.launch", "-n", "1", "-m", "show", "3"],
        cwd=tmp_path, capture_output=True, text=True, timeout=100, check=True,
    )  # fmt: skip
    ((rank, size, argv, path, name, threads, has_mpi),) = shown(done.stdout)
    assert (rank, size, argv[1:], path, name) == (0, 1, ["3"], str(tmp_path), "__main__")
    assert (threads, has_mpi) == (1, False)


def test_processes_of_a_launcher_need_mpi4py(tmp_path):
    (tmp_path / "mpi4py.py").write_text("raise ImportError('hidden')\n")
    program = "import mxnet as mx\nmx.kv.create('dist_sync')\n"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=100,
        env={**os.environ, "PYTHONPATH": str(tmp_path), "PMI_SIZE": "2", "PMI_RANK": "0"},
    )  # fmt: skip
    assert done.returncode == 1
    assert "mpi4py, which is not installed\n  hint: pip install mxnet[dist]" in done.stderr


def test_a_launcher_of_another_mpi_is_an_error():
    program = "import mxnet as mx\nmx.kv.create('dist_sync')\n"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=100,
        env={**os.environ, "OMPI_COMM_WORLD_SIZE": "2"},
    )  # fmt: skip
    assert done.returncode == 1
    assert "DistributedError: kvstore: a launcher has started several processes, but MPI sees one" in done.stderr


def test_missing_packages_are_named(monkeypatch, tmp_path):
    monkeypatch.setattr(launcher.sysconfig, "get_path", lambda name: str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ImportError, match=r"no `mpiexec` in .*mpich(.|\n)*pip install mxnet\[dist\]"):
        launcher.find_mpiexec()
    program = tmp_path / "mpiexec"
    program.touch(mode=0o700)
    assert launcher.find_mpiexec() == program
    monkeypatch.setattr(launcher.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"mpi4py, .* is missing\n  hint"):
        launcher.find_mpiexec()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-n", "0", __file__], "-n must be at least 1, found 0"),
        (["-n", "2", "nowhere.py"], "there is no script 'nowhere.py'"),
        (["-n", "2"], "program"),
        ([__file__], "-n"),
        (["--speed", "-n", "1", __file__], "--speed"),
    ],
)
def test_wrong_arguments_say_what_is_wrong(arguments, said, capsys):
    with pytest.raises(SystemExit):
        launcher.main(arguments)
    assert said in capsys.readouterr().err


def test_the_exit_status_of_the_program_is_passed_on(tmp_path):
    script = tmp_path / "leave.py"
    script.write_text("import sys\nsys.exit(7)\n")
    assert launch(2, script).returncode == 7
