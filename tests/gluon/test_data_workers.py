"""Worker processes and threads of the loader: order, randomness, failures, resources, resuming."""

import gc
import json
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import traceback

import numpy as onp
import pytest

import mxnet as mx
import worker_datasets as sets
from mxnet.gluon import data
from mxnet.gluon.data import batchify
from mxnet.gluon.data._shared_memory import allocate, map_file, receive_fd, send_fd

KINDS = [{"num_workers": 0}, {"num_workers": 2, "thread_pool": True}, {"num_workers": 1}, {"num_workers": 3}]


@pytest.fixture(autouse=True)
def _importable_main(monkeypatch):
    """Processes are those of a program that workers can import: pytest-xdist runs tests in one that they cannot."""
    monkeypatch.setattr("mxnet.gluon.data._process_pool._main_is_importable", lambda: True)


def values(loader):
    return [batch.asnumpy().tolist() for batch in loader]


def children():
    """Worker processes; those of loaders that only tracebacks of earlier tests hold are ended first."""
    gc.collect()
    return [child for child in multiprocessing.active_children() if child.name.startswith("DataLoader")]


@pytest.mark.parametrize("options", KINDS)
def test_order_does_not_depend_on_workers(options):
    dataset = data.ArrayDataset(list(range(23)), [x * x for x in range(23)])
    loader = data.DataLoader(dataset, 4, **options)
    assert len(loader) == 6
    for _ in range(2):
        batches = [(x.asnumpy().tolist(), y.asnumpy().tolist()) for x, y in loader]
        assert [value for x, _ in batches for value in x] == list(range(23))
        assert all(b == a * a for x, y in batches for a, b in zip(x, y, strict=True))


def test_workers_are_processes_with_one_engine_thread_each():
    loader = data.DataLoader(sets.Workers(8), 1, num_workers=2)
    with mx.autograd.record():
        made = [[int(part.item()) for part in batch] for batch in loader]
    pids = {pid for pid, *_ in made}
    assert len(pids) == 2
    assert os.getpid() not in pids
    assert {tuple(rest) for _, *rest in made} == {(1, 1, 0)}
    with mx.autograd.pause():
        again = [[int(part.item()) for part in batch] for batch in loader]
    # The same processes serve all loops; the mode is that of each loop.
    assert {pid for pid, *_ in again} == pids
    assert {tuple(rest) for _, *rest in again} == {(1, 0, 0)}


def test_threads_are_threads():
    made = [
        [int(part.item()) for part in batch]
        for batch in data.DataLoader(sets.Workers(4), 1, num_workers=2, thread_pool=True)
    ]
    assert {pid for pid, *_ in made} == {os.getpid()}


def test_our_random_numbers_do_not_depend_on_workers():
    runs = []
    for options in KINDS:
        mx.random.seed(11)
        loader = data.DataLoader(sets.Random(20), 3, shuffle=True, **options)
        runs.append([values(loader), values(loader)])
        runs[-1].append(mx.np.random.uniform().item())
    ours = [[[[sample[:2] + sample[4:] for sample in batch] for batch in epoch] for epoch in run[:2]] for run in runs]
    assert ours[0] == ours[1] == ours[2] == ours[3]
    # The process's own stream goes on alike, whatever the workers drew.
    assert len({run[2] for run in runs}) == 1
    # Python's and NumPy's numbers are the same in one process and in three.
    assert runs[2] == runs[3]
    samples = [tuple(sample[:4]) for epoch in runs[3][:2] for batch in epoch for sample in batch]
    assert len({number for sample in samples for number in sample}) == 4 * 40


@pytest.mark.parametrize("options", KINDS)
def test_batch_builders_draw_numbers_of_their_batch(options):
    mx.random.seed(2)
    made = values(data.DataLoader(sets.Numbers(6), 2, batchify_fn=sets.RandomBatches(), **options))
    mx.random.seed(2)
    assert made == values(data.DataLoader(sets.Numbers(6), 2, batchify_fn=sets.RandomBatches()))
    assert len({number for batch in made for number in batch}) == 6


def test_loading_leaves_other_generators_alone():
    onp.random.seed(3)
    before = onp.random.get_state()[1].tolist()
    values(data.DataLoader(sets.Numbers(6), 2, num_workers=1))
    assert onp.random.get_state()[1].tolist() == before


@pytest.mark.parametrize("options", KINDS)
def test_failure_names_the_sample_and_keeps_its_traceback(options):
    batches = iter(data.DataLoader(sets.Broken(10), 2, **options))
    assert [next(batches).asnumpy().tolist() for _ in range(2)] == [[0, 1], [2, 3]]
    with pytest.raises(KeyError, match="no such picture") as caught:
        next(batches)
    assert caught.value.__notes__ == ["while loading sample 5 of Broken"]
    assert "in __getitem__" in "".join(traceback.format_exception(caught.value))


def test_failure_does_not_end_the_processes():
    loader = data.DataLoader(sets.Broken(10), 1, num_workers=1)
    for _ in range(2):
        batches = iter(loader)
        assert [next(batches).item() for _ in range(5)] == list(range(5))
        with pytest.raises(KeyError):
            next(batches)
        assert len(children()) == 1


def test_exception_that_cannot_be_pickled_keeps_its_words():
    with pytest.raises(RuntimeError, match="OddError: one and two") as caught:
        list(data.DataLoader(sets.RaisesOddError(2), 1, num_workers=1))
    assert caught.value.__notes__ == ["while loading sample 0 of RaisesOddError"]
    assert "worker_datasets.OddError: one and two" in str(caught.value.__cause__)


@pytest.mark.parametrize("options", KINDS)
def test_failing_builder_names_the_batch(options):
    loader = data.DataLoader([[1], [2, 3]], 2, **options)
    with pytest.raises(ValueError, match="same shape") as caught:
        list(loader)
    assert caught.value.__notes__ == ["while building a batch of the samples [0, 1]"]


def test_failures_of_pipes_in_the_dataset_are_raised():
    for idx, kind in enumerate((BrokenPipeError, EOFError)):
        with pytest.raises(kind, match="of the dataset") as caught:
            list(data.DataLoader(sets.Disconnected(2), batch_sampler=[[idx]], num_workers=1))
        assert caught.value.__notes__ == [f"while loading sample {idx} of Disconnected"]


def test_long_tasks_and_long_answers_pass_each_other():
    # A task of 200,000 numbers and an answer of a megabyte are both more than a pipe holds.
    texts = data.DataLoader(
        sets.LongTexts(100_000), 100, num_workers=2, prefetch=100, batchify_fn=batchify.AsList(), timeout=60
    )
    assert all(batch == ["x" * 10_000] * 100 for batch, _ in zip(texts, range(200), strict=False))
    numbers = data.DataLoader(sets.Numbers(10**6), 200_000, num_workers=1, prefetch=5, timeout=60)
    assert [batch[0].item() for batch in numbers] == [200_000 * number for number in range(5)]


def test_dataset_that_cannot_be_sent():
    with pytest.raises(TypeError, match=r"SimpleDataset|_Transformed.*forkserver.*thread_pool=True"):
        list(data.DataLoader(data.SimpleDataset([1]).transform(lambda x: x), 1, num_workers=1))
    assert children() == []


def test_dataset_whose_class_the_worker_cannot_import(monkeypatch):
    module = type(sys)("only_here")
    vanishing = type("Vanishing", (sets.Numbers,), {"__module__": "only_here"})
    module.Vanishing = vanishing
    monkeypatch.setitem(sys.modules, "only_here", module)
    with pytest.raises(ModuleNotFoundError, match="only_here") as caught:
        list(data.DataLoader(vanishing(3), 1, num_workers=1))
    assert "define it at the top of a module" in caught.value.__notes__[0]
    assert children() == []


def test_killed_worker_is_an_error_and_the_next_loop_works():
    dataset = sets.Dies(10)
    loader = data.DataLoader(dataset, 1, num_workers=2)
    with pytest.raises(RuntimeError, match=r"worker process \d+ was killed by SIGKILL"):
        list(loader)
    assert children() == []
    assert values(data.DataLoader(sets.Numbers(3), 1, num_workers=1)) == [[0], [1], [2]]
    batches = iter(loader)
    assert [next(batches).item() for _ in range(4)] == [0, 1, 2, 3]


@pytest.mark.parametrize("thread_pool", [False, True])
def test_timeout(thread_pool):
    # A thread that sleeps cannot be ended; it is waited for as long as for a batch.
    dataset = sets.Waits(3) if not thread_pool else Blocked()
    with pytest.raises(TimeoutError, match=r"no batch within `timeout` \(0.2 seconds\)"):
        list(data.DataLoader(dataset, 1, num_workers=1, thread_pool=thread_pool, timeout=0.2))
    assert children() == []
    if thread_pool:
        dataset.go.set()


class Blocked(data.Dataset):
    def __init__(self):
        self.go = threading.Event()

    def __len__(self):
        return 2

    def __getitem__(self, idx):
        self.go.wait()
        return idx


def test_leaving_early_cancels_what_is_not_begun_and_keeps_the_processes():
    loader = data.DataLoader(sets.Numbers(1000), 2, num_workers=2, prefetch=5)
    for _ in range(3):
        for number, batch in enumerate(loader):
            assert batch.asnumpy().tolist() == [2 * number, 2 * number + 1]
            if number == 3:
                break
        assert len(children()) == 2
    assert len(values(loader)) == 500


def test_two_loops_over_one_loader():
    loader = data.DataLoader(sets.Numbers(9), 1, num_workers=2)
    pairs = [(a.item(), b.item()) for a, b in zip(loader, loader, strict=True)]
    assert pairs == [(idx, idx) for idx in range(9)]


def test_nothing_is_left_when_the_loader_goes():
    # The server that forks workers, and what watches it, stay with the process.
    list(data.DataLoader(sets.Growing(1), 1, num_workers=1, batchify_fn=batchify.AsList()))
    before = sets.open_files()
    for leave_early in (False, True):
        loader = data.DataLoader(sets.Growing(8), 1, num_workers=2, batchify_fn=batchify.AsList())
        batches = iter(loader)
        made = [next(batches) for _ in range(3)] if leave_early else list(batches)
        assert sum("mxnet-data" in name for name in sets.open_files()) >= 2
        del batches, loader
        assert children() == []
        assert sets.open_files() == before
        # The arrays have memory of their own.
        for number, (sample,) in enumerate(made):
            assert sample["text"] == "x" * number
            assert sample["bits"].dtype == mx.np.bfloat16
            assert (sample["bits"].astype("float32").asnumpy() == number).all()
            assert sample["bits"].shape == (number + 1, 100)
            assert (sample["host"].shape, sample["host"].dtype) == ((number, 50), onp.int16)
            assert sample["host"].flags.writeable
            assert sample["dates"][0] == onp.datetime64("2020-01-01")


def test_loader_that_is_pickled_leaves_its_workers_here():
    loader = data.DataLoader(sets.Numbers(4), 2, num_workers=1)
    assert values(loader) == values(pickle.loads(pickle.dumps(loader))) == [[0, 1], [2, 3]]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_forked_process_leaves_the_workers_of_its_parent_alone():
    loader = data.DataLoader(sets.Workers(6), 1, num_workers=2)
    batches = iter(loader)
    pids = {int(next(batches)[0].item()) for _ in range(2)}
    child = os.fork()
    if child == 0:
        try:
            with pytest.raises(RuntimeError, match="start a new loop"):
                next(batches)
            del batches, loader
            gc.collect()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert {int(pid.item()) for pid, *_ in batches} <= pids
    assert {int(pid.item()) for pid, *_ in loader} == pids


SCRIPT = """
import os, signal, sys, time
sys.path.insert(0, {support!r})
import worker_datasets as sets
from mxnet.gluon import data

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # the shell may have it ignored
    loader = data.DataLoader({dataset}, 1, num_workers=2, timeout=60)
    batches = iter(loader)
    print(*(int(next(batches)[0].item()) for _ in range(2)), flush=True)
    {then}
"""


def run_script(tmp_path, dataset, then):
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(SCRIPT).format(support=os.path.dirname(sets.__file__), dataset=dataset, then=then))
    return subprocess.Popen(
        [sys.executable, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def is_gone(pid):
    """Whether a process has ended; waits for that."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        import select

        return bool(select.select([descriptor], [], [], 30)[0])
    finally:
        os.close(descriptor)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="waiting for processes that are no children needs pidfd")
@pytest.mark.parametrize("then", ["", "os.kill(os.getpid(), signal.SIGKILL)", "list(batches)"])
def test_processes_end_with_the_program(tmp_path, then):
    # In the last case the program waits for a batch that takes forever until Ctrl-C.
    dataset = "sets.Workers(10)" if then != "list(batches)" else "PidsThenWait()"
    script = run_script(tmp_path, f"sets.{dataset}" if "sets." not in dataset else dataset, then)
    pids = [int(word) for word in script.stdout.readline().split()]
    assert len(pids) == 2
    if then == "list(batches)":
        os.killpg(script.pid, signal.SIGINT)
    _, error = script.communicate(timeout=60)
    assert all(is_gone(pid) for pid in pids)
    if then == "":
        assert (script.returncode, error) == (0, "")
    elif then == "list(batches)":
        assert error.strip().endswith("KeyboardInterrupt")
        assert error.count("Traceback") == 1  # none of the workers'


UNGUARDED = """
import multiprocessing
from mxnet.gluon import data
{choice}

class Squares(data.Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        return index**2

print([x.item() for x in data.DataLoader(Squares(), 1, num_workers=1, timeout=60)])
"""


def test_a_file_descriptor_passes_between_messages_of_both_directions():
    ours, theirs = multiprocessing.Pipe()
    ours.send("the next task")
    fd = allocate(5)
    theirs.send("made")
    send_fd(theirs, fd)
    os.close(fd)
    theirs.send("made again")
    assert ours.recv() == "made"
    assert len(map_file(receive_fd(ours))) == 5
    assert ours.recv() == "made again"
    assert theirs.recv() == "the next task"
    theirs.close()
    with pytest.raises(EOFError):
        receive_fd(ours)
    ours.close()


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="workers are forked")
@pytest.mark.parametrize("is_file", [True, False])
def test_program_that_workers_cannot_import_runs(tmp_path, is_file):
    path = tmp_path / "script.py"
    path.write_text(UNGUARDED.format(choice=""))
    command = [sys.executable, "-W", "error", str(path) if is_file else "-"]
    done = subprocess.run(command, input=path.read_text(), capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.stderr) == ("[0, 1]\n", "")


def test_script_without_guard_that_chose_spawn_names_the_guard_in_its_error(tmp_path):
    path = tmp_path / "script.py"
    choice = "if multiprocessing.get_start_method(True) is None: multiprocessing.set_start_method('spawn')"
    path.write_text(UNGUARDED.format(choice=choice))
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert 'if __name__ == "__main__"' in done.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize("options", KINDS[1:])
@pytest.mark.parametrize("last_batch", ["keep", "discard", "rollover"])
def test_resuming_gives_the_same_batches(options, last_batch):
    def make(**others):
        return data.DataLoader(sets.Random(10), 3, shuffle=True, last_batch=last_batch, **others)

    mx.random.seed(5)
    loader = make()
    first = values(loader)
    batches = iter(loader)
    second = [next(batches).asnumpy().tolist() for _ in range(2)]
    state = json.loads(json.dumps(loader.state_dict()))
    rest = values(batches)
    third = values(loader)
    assert loader.state_dict()["seed"] is None

    resumed = make(**options)
    resumed.load_state_dict(state)
    assert resumed.state_dict() == state
    ours = [[sample[:2] + sample[4:] for sample in batch] for batch in rest]
    assert [[sample[:2] + sample[4:] for sample in batch] for batch in values(resumed)] == ours
    # The loop after it is drawn anew, and goes on with what was left over.
    assert len(values(resumed)) == len(third)
    assert len({number for batch in first + second + rest + third for sample in batch for number in sample[:2]}) == sum(
        2 * len(batch) for batch in first + second + rest + third
    )


@pytest.mark.parametrize("num_batches", [0, 4])
def test_resuming_at_the_ends(num_batches):
    loader = data.DataLoader(list(range(8)), 2, shuffle=True)
    batches = iter(loader)
    taken = [next(batches).asnumpy().tolist() for _ in range(num_batches)]
    state = loader.state_dict()
    rest = values(batches)
    assert len(taken) + len(rest) == 4
    loader.load_state_dict(state)
    assert values(loader) == rest
    assert sorted(value for batch in values(loader) for value in batch) == list(range(8))


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (3, "found int"),
        ({"seed": 1}, r"found \['seed'\]"),
        ({"seed": -1, "num_batches": 0, "sampler": None}, "found -1"),
        ({"seed": 1, "num_batches": 1.5, "sampler": None}, "found 1.5"),
        ({"seed": None, "num_batches": 2, "sampler": None}, "found 2 without a seed"),
        ({"seed": 1, "num_batches": 0, "sampler": None}, "the other has none"),
        ({"seed": 1, "num_batches": 0, "sampler": {"left_over": []}}, r"found \['left_over'\]"),
        ({"seed": 1, "num_batches": 0, "sampler": {"left_over": [], "sampler": 3}}, "the other has none"),
    ],
)
def test_states_of_others_are_refused(state, message):
    with pytest.raises(ValueError, match=message):
        data.DataLoader([1, 2], 1).load_state_dict(state)


def test_state_of_a_longer_loop_is_refused():
    loader = data.DataLoader([1, 2], 1)
    loader.load_state_dict({"seed": 1, "num_batches": 3, "sampler": {"left_over": [], "sampler": None}})
    with pytest.raises(ValueError, match="behind batch 3, but there are 2"):
        list(loader)


class Countdown(data.Sampler):
    """A sampler with a state: it begins one lower each time."""

    def __init__(self):
        self.start = 6

    def __iter__(self):
        self.start -= 1
        return iter(range(self.start, -1, -1))

    def __len__(self):
        return self.start

    def state_dict(self):
        return self.start

    def load_state_dict(self, state):
        self.start = state


def test_samplers_with_a_state_are_resumed():
    loader = data.DataLoader(list(range(9)), 2, sampler=Countdown())
    list(loader)
    batches = iter(loader)
    next(batches)
    state, rest = loader.state_dict(), values(batches)
    assert rest == [[2, 1], [0]]
    other = data.DataLoader(list(range(9)), 2, sampler=Countdown())
    other.load_state_dict(state)
    assert values(other) == rest
    assert values(other) == values(loader) == [[3, 2], [1, 0]]


def test_program_from_a_pipe_needs_no_file():
    program = "from mxnet.gluon import data\nprint([x.item() for x in data.DataLoader([1, 2], 1, num_workers=1)])\n"
    command = [sys.executable, "-"]
    done = subprocess.run(command, input=program, capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.stderr) == ("[1, 2]\n", "")


# Last, because a server process that `forkserver` starts here has not imported this package for the workers of others.
@pytest.fixture(params=multiprocessing.get_all_start_methods())
def method(request):
    multiprocessing.set_start_method(request.param, force=True)
    yield request.param
    multiprocessing.set_start_method(None, force=True)


def test_processes_by_every_start_method(method):
    loader = data.DataLoader(sets.Shared(), 2, num_workers=1)
    for _ in range(2):
        (x, y), (u, v) = loader
        assert x.asnumpy().tolist() == [[0.0] * 3, [1.0] * 3]
        assert (y.asnumpy().tolist(), v.asnumpy().tolist()) == ([0, 1], [2, 3])
        assert (x.dtype, u.shape) == (onp.float64, (2, 3))
