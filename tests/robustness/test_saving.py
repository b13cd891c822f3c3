"""Saved files: the old one or the new one, whatever happens to the process, the disk or the name."""

import os
import signal
import subprocess
import sys
import time

import numpy as onp
import pytest

import mxnet as mx
import processes
from mxnet import gluon, np, npx, recordio
from processes import PRELUDE, run

unix = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")


def _arrays(k):
    return np.full((1000,), float(k))


def _net(k):
    net = gluon.nn.Dense(10, in_units=10)
    net.initialize(mx.init.Constant(k))
    return net


def _trainer(k):
    trainer = gluon.Trainer(_net(0).collect_params(), "adam", {"learning_rate": float(k) + 1})
    trainer._init_kvstore() if hasattr(trainer, "_init_kvstore") else None
    return trainer


def _loaded_trainer(path):
    trainer = _trainer(5)
    trainer.load_states(path)
    return trainer.learning_rate - 1


def _loaded_net(path):
    net = _net(7)
    net.load_parameters(path)
    return net.weight.data()[0, 0].item()


# How a number is saved under a name, and read again. Each name is the whole name of the file.
SAVES = {
    "np.save": (lambda path, k: np.save(path, _arrays(k)), lambda path: np.load(path)[0].item(), ".npy"),
    "np.savez": (lambda path, k: np.savez(path, a=_arrays(k)), lambda path: np.load(path)["a"][0].item(), ".npz"),
    "np.savez_compressed": (
        lambda path, k: np.savez_compressed(path, a=_arrays(k)),
        lambda path: np.load(path)["a"][0].item(),
        ".npz",
    ),
    "npx.savez": (lambda path, k: npx.savez(path, a=_arrays(k)), lambda path: npx.load(path)["a"][0].item(), ".npz"),
    "npx.save of one": (lambda path, k: npx.save(path, _arrays(k)), lambda path: npx.load(path)[0].item(), ".npy"),
    "npx.save of named": (
        lambda path, k: npx.save(path, {"a": _arrays(k)}),
        lambda path: npx.load(path)["a"][0].item(),
        ".safetensors",
    ),
    "sparse.save_npz": (
        lambda path, k: mx.sparse.save_npz(path, mx.sparse.csr_array(_arrays(k).reshape(10, 100))),
        lambda path: mx.sparse.load_npz(path).toarray()[0, 0].item(),
        ".npz",
    ),
    "sparse.save": (
        lambda path, k: mx.sparse.save(path, {"a": mx.sparse.csr_array(_arrays(k).reshape(10, 100))}),
        lambda path: mx.sparse.load(path)["a"].toarray()[0, 0].item(),
        ".safetensors",
    ),
    "parameters": (lambda path, k: _net(k).save_parameters(path), _loaded_net, ".params"),
    "states": (lambda path, k: _trainer(k).save_states(path), _loaded_trainer, ".states"),
}
each_save = pytest.mark.parametrize("name", SAVES)


def _paths(name, tmp_path):
    save, load, ending = SAVES[name]
    return save, load, str(tmp_path / f"file{ending}")


@each_save
def test_a_save_is_read_again_and_leaves_nothing_else(name, tmp_path):
    save, load, path = _paths(name, tmp_path)
    for k in (1, 2):
        save(path, k)
        assert load(path) == k
    assert os.listdir(tmp_path) == [os.path.basename(path)]


@unix
@each_save
def test_what_is_no_file_is_neither_replaced_nor_waited_for(name, tmp_path):
    save, load, path = _paths(name, tmp_path)
    os.mkfifo(path)
    for call in (lambda: save(path, 1), lambda: load(path)):
        with pytest.raises(mx.error.IOError, match="is a pipe, not a file"):
            call()
    os.unlink(path)
    os.symlink("/dev/zero", path)
    for call in (lambda: save(path, 1), lambda: load(path)):
        with pytest.raises(mx.error.IOError, match="is a device, not a file"):
            call()
    os.unlink(path)
    os.mkdir(path)
    for call in (lambda: save(path, 1), lambda: load(path)):
        with pytest.raises(IsADirectoryError):
            call()
    assert os.listdir(tmp_path) == [os.path.basename(path)]


@unix
@each_save
def test_a_link_stays_a_link_also_one_that_leads_nowhere_yet(name, tmp_path):
    save, load, path = _paths(name, tmp_path)
    (tmp_path / "folder").mkdir()
    os.symlink(os.path.join("folder", "there"), path)
    for k in (1, 2):
        save(path, k)
        assert os.path.islink(path)
        assert load(path) == k
    assert os.listdir(tmp_path / "folder") == ["there"]
    os.symlink("loop", tmp_path / "loop")
    with pytest.raises(OSError, match="symbolic links"):
        npx.save(tmp_path / "loop", {"a": np.ones(1)})


@unix
def test_permissions_stay(tmp_path):
    path = str(tmp_path / "file.npy")
    np.save(path, np.ones(1))
    mask = os.umask(0)
    os.umask(mask)
    assert os.stat(path).st_mode & 0o777 == 0o666 & ~mask
    os.chmod(path, 0o640)
    np.save(path, np.ones(2))
    assert os.stat(path).st_mode & 0o777 == 0o640


@pytest.mark.skipif(sys.platform != "linux", reason="the size of files is limited as Linux does")
@each_save
def test_a_full_disk_leaves_the_old_file_at_every_write(name, tmp_path):
    save, load, path = _paths(name, tmp_path)
    save(path, 1)
    size = os.path.getsize(path)
    run(
        """
        import resource
        sys.path[:0] = sys.argv[1].split(":")
        from test_saving import SAVES
        save = SAVES[sys.argv[2]][0]
        path, size = sys.argv[3], int(sys.argv[4])
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        for limit in [0, 1, 7, 8, 9, *range(50, size - 1, max(size // 12, 1)), size - 1]:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
            try:
                save(path, 2)
            except OSError:
                continue
            raise SystemExit(f"nothing is raised at {limit} bytes of {size}")
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        """,
        f"{os.path.dirname(__file__)}:{os.path.dirname(processes.__file__)}",
        name,
        path,
        size,
    )
    assert load(path) == 1
    assert os.listdir(tmp_path) == [os.path.basename(path)]


@unix
def test_killed_saves_leave_the_old_file_and_what_the_next_save_removes(tmp_path):
    program = PRELUDE + (
        "x = np.ones(2_000_000)\nnpx.save('a', {'x': x})\nprint('ready', flush=True)\n"
        "while True:\n    npx.save('a', {'x': x})\n"
    )
    left = 0
    for delay in (0.0, 0.003, 0.007, 0.011):
        two = [
            subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path, stdout=subprocess.PIPE) for _ in range(2)
        ]
        for process in two:
            process.stdout.readline()
        time.sleep(delay)
        for process in two:
            process.send_signal(signal.SIGKILL)
            process.wait()
            process.stdout.close()
        found = npx.load(tmp_path / "a")["x"]
        assert (found == 1).all()
        left += len(os.listdir(tmp_path)) - 1
    npx.save(tmp_path / "a", {"x": np.zeros(1)})
    assert os.listdir(tmp_path) == ["a"], left


@unix
def test_savers_of_one_file_at_once_do_not_mix(tmp_path):
    program = PRELUDE + (
        "for k in range(40):\n    npx.save('a', {'x': np.full((50_000,), float(sys.argv[1]))})\n"
        "    x = npx.load('a')['x'].asnumpy()\n    assert (x == x[0]).all()\n"
    )
    savers = [subprocess.Popen([sys.executable, "-c", program, str(k)], cwd=tmp_path) for k in range(3)]
    assert [saver.wait() for saver in savers] == [0, 0, 0]
    assert os.listdir(tmp_path) == ["a"]


@unix
def test_a_file_of_a_forked_process_is_left_to_its_owner(tmp_path):
    writer = recordio.MXRecordIO(tmp_path / "a.rec", "w")
    writer.write(b"one")
    child = os.fork()
    if child == 0:
        writer.close()
        del writer
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    writer.write(b"two")
    writer.close()
    assert os.listdir(tmp_path) == ["a.rec"]
    reader = recordio.MXRecordIO(tmp_path / "a.rec", "r")
    assert [reader.read(), reader.read(), reader.read()] == [b"one", b"two", None]
    reader.close()


def test_open_files_are_written_as_they_are(tmp_path):
    with open(tmp_path / "a", "w+b") as file:
        np.save(file, np.arange(3))
        np.savez(file, a=np.arange(3))
    assert os.listdir(tmp_path) == ["a"]
    assert onp.load(tmp_path / "a").tolist() == [0, 1, 2]


def test_endings_are_added_as_numpy_does(tmp_path):
    np.save(tmp_path / "a", np.ones(1))
    np.savez(tmp_path / "a", np.ones(1))
    assert sorted(os.listdir(tmp_path)) == ["a.npy", "a.npz"]
    assert onp.load(tmp_path / "a.npz")["arr_0"].tolist() == [1]


@unix
def test_a_link_that_somebody_else_put_there_is_not_followed(tmp_path):
    (tmp_path / "victim").write_text("untouched")
    for number in (0, 2):
        os.symlink("victim", tmp_path / f".a.{number}.mxnet-tmp")
    os.mkfifo(tmp_path / ".a.1.mxnet-tmp")
    npx.save(tmp_path / "a", {"x": np.ones(3)})
    assert npx.load(tmp_path / "a")["x"].tolist() == [1, 1, 1]
    assert (tmp_path / "victim").read_text() == "untouched"
    assert len(os.listdir(tmp_path)) == 5
