"""Streams of modules' devices: the example's, with kernels that wait for the test; and devices whose streams lie."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as onp
import pytest

import mxnet as mx
from module_libraries import Build, module
from mxnet import _core, autograd, np, npx

NAME = "accelerator"

# `gate(x)` copies `x` when the test opens the gate, and then fails if it shall. It is enqueued by the function that the
# example offers to others.
GATES = """
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>
typedef int32_t work_function(void *argument, char *message, size_t capacity);
static int32_t (*launch)(void *stream, work_function *work, void *argument);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int is_open[64], num_passed[64];
void open_gate(int gate);
void open_gate(int gate)
{
    pthread_mutex_lock(&lock);
    is_open[gate] = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}
struct blocked { int gate, thread; };
static void *open_then(void *argument)
{
    struct blocked caller = *(struct blocked *)argument;
    char path[64], line[512] = "";
    free(argument);
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", caller.thread);
    while (!strstr(line, ") S ")) {
        FILE *file = fopen(path, "r");
        if (!file || !fgets(line, sizeof line, file))
            break;
        fclose(file);
    }
    open_gate(caller.gate);
    return NULL;
}
/* Opens a gate when the calling thread sleeps. It does not need the interpreter, whose lock that thread may hold. */
void open_when_blocked(int gate);
void open_when_blocked(int gate)
{
    pthread_t thread;
    struct blocked *caller = malloc(sizeof *caller);
    *caller = (struct blocked){gate, gettid()};
    pthread_create(&thread, NULL, open_then, caller);
    pthread_detach(thread);
}
int passed(int gate);
int passed(int gate)
{
    pthread_mutex_lock(&lock);
    int passed = num_passed[gate];
    pthread_mutex_unlock(&lock);
    return passed;
}
struct passage { float *to; const float *from; int64_t len; int gate, fails; };
static int32_t pass(void *argument, char *message, size_t capacity)
{
    struct passage job = *(struct passage *)argument;
    free(argument);
    pthread_mutex_lock(&lock);
    while (!is_open[job.gate])
        pthread_cond_wait(&changed, &lock);
    num_passed[job.gate]++;
    pthread_mutex_unlock(&lock);
    memcpy(job.to, job.from, sizeof(float) * (size_t)job.len);
    if (job.fails)
        snprintf(message, capacity, "gate %d was asked to fail", job.gate);
    return job.fails ? MX_MODULE_VALUE : MX_MODULE_OK;
}
static int32_t gate_there(const mx_kernel_call *call)
{
    struct passage *job = malloc(sizeof *job);
    *job = (struct passage){
        call->outputs[0].data, call->inputs[0].data, 1, (int)call->attributes[0].integer,
        (int)call->attributes[1].integer};
    for (int axis = 0; axis < call->inputs[0].ndim; axis++)
        job->len *= call->inputs[0].shape[axis];
    return launch(call->stream, pass, job);
}
static int32_t gate_here(const mx_kernel_call *call) { (void)call; return MX_MODULE_FAILED; }
static const char *const operands[] = {"x"};
static const mx_parameter parameters[] = {
    {"number", {.kind = MX_PARAMETER_INT}}, {"fails", {.kind = MX_PARAMETER_BOOL}}};
"""
ADDS_GATES = """
    void *accelerator = dlopen("ACCELERATOR", RTLD_NOW | RTLD_NOLOAD);
    *(void **)&launch = accelerator ? dlsym(accelerator, "accelerator_launch") : NULL;
    if (!launch)
        return MX_MODULE_FAILED;
    const mx_operator op = {
        .size = sizeof op, .name = "gate", .inputs = operands, .num_inputs = 1, .num_outputs = 1,
        .parameters = parameters, .num_parameters = 2, .kernel = gate_here};
    host->add_operator(host->context, &op);
    const mx_kernel_entry kernel = {.size = sizeof kernel, .op = "gate", .device = "accelerator", .kernel = gate_there};
    return host->add_kernel(host->context, &kernel);
"""


class Gates:
    """Numbered gates, each used once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._library = ctypes.CDLL(str(path))
        self._next = 0

    def new(self) -> int:
        self._next += 1
        return self._next

    def open(self, gate: int) -> None:
        self._library.open_gate(gate)

    def open_when_blocked(self, gate: int) -> None:
        self._library.open_when_blocked(gate)

    def open_all(self) -> None:
        for gate in range(self._next + 1):
            self.open(gate)

    def passed(self, gate: int) -> int:
        return int(self._library.passed(gate))


@pytest.fixture(scope="module")
def all_gates(build: Build, accelerator: mx.library.Module) -> Gates:
    body = ADDS_GATES.replace("ACCELERATOR", accelerator.path)
    path = build("gates", "#define _GNU_SOURCE\n" + module(body, GATES).replace('"test"', '"gates"'))
    mx.library.load(path, verbose=False)
    return Gates(path)


@pytest.fixture
def gates(all_gates: Gates) -> Iterator[Gates]:
    yield all_gates
    # A test that fails leaves no gate closed: the next one would wait behind it.
    all_gates.open_all()


def on_thread(function: Callable[[], Any]) -> Future[Any]:
    """The result of a function that runs on a thread of its own."""
    executor = ThreadPoolExecutor(1)
    result = executor.submit(function)
    executor.shutdown(wait=False)
    return result


def there(values: Any) -> mx.np.ndarray:
    x = np.array(values, dtype="float32").to_device(mx.Device(NAME))
    x.wait_to_read()
    return x


def test_a_call_returns_before_its_work_is_done_and_a_read_waits(gates: Gates) -> None:
    x, gate = there([1.0, 2.0]), gates.new()
    y = npx.gate(x, number=gate) + x
    host = y.to_device(mx.cpu())  # the copy is enqueued as well
    read, waited = on_thread(y.asnumpy), on_thread(npx.waitall)
    assert gates.passed(gate) == 0
    assert not read.done()
    assert not waited.done()
    gates.open(gate)
    assert read.result().tolist() == host.tolist() == [2.0, 4.0]
    waited.result()
    assert gates.passed(gate) == 1


def test_streams_of_two_threads_are_ordered_where_they_share_arrays(gates: Gates) -> None:
    x, gate = there([1.0, 2.0]), gates.new()
    y = on_thread(lambda: npx.gate(x, number=gate)).result()
    assert (x + x).tolist() == [2.0, 4.0]  # this thread's stream goes on
    z = y + x  # now it waits for the other thread's
    x += 1.0  # and writes what the other one reads
    assert gates.passed(gate) == 0
    gates.open(gate)
    assert z.tolist() == [2.0, 4.0]
    assert y.tolist() == [1.0, 2.0]
    assert x.tolist() == [2.0, 3.0]


def test_main_memory_is_not_written_while_it_is_copied_from(gates: Gates) -> None:
    x, gate = there([0.0]), gates.new()
    blocker = npx.gate(x, number=gate)
    here = np.array([1.0, 2.0])
    copied = here.to_device(mx.Device(NAME))  # behind the gate
    written = on_thread(lambda: here.__setitem__(slice(None), 5.0))
    assert gates.passed(gate) == 0
    gates.open(gate)
    written.result()
    assert copied.tolist() == [1.0, 2.0]
    assert here.tolist() == [5.0, 5.0]
    assert blocker.tolist() == [0.0]


def test_memory_is_not_reused_while_work_uses_it(gates: Gates) -> None:
    x, gate = there(onp.ones(300)), gates.new()
    # Another thread enqueues, so that nothing on this thread's stream waits for the gate.
    on_thread(lambda: npx.gate(x, number=gate)).result()  # the result is freed at once
    others = [there(onp.full(300, 7.0)) for _ in range(20)]
    assert gates.passed(gate) == 0
    gates.open(gate)
    npx.waitall()
    assert gates.passed(gate) == 1
    assert all((other.asnumpy() == 7.0).all() for other in others)


def test_a_full_device_waits_for_memory_that_is_about_to_be_free(gates: Gates) -> None:
    x, gate = there(onp.ones(100_000)), gates.new()  # 400 of 1024 KiB
    on_thread(lambda: npx.gate(x, number=gate)).result()  # 400 more, which are free when the gate is passed
    gates.open_when_blocked(gate)
    assert (there(onp.full(100_000, 3.0)).asnumpy() == 3.0).all()
    assert gates.passed(gate) == 1


def test_a_failure_in_a_stream_reaches_those_who_read_its_results(gates: Gates) -> None:
    x, gate = there([1.0, 2.0]), gates.new()
    failed = npx.gate(x, number=gate, fails=True)
    derived = np.exp(failed) * 2.0
    elsewhere = on_thread(lambda: derived + x).result()  # in another stream
    other = x + 1.0
    gates.open(gate)
    assert other.tolist() == [2.0, 3.0]
    for array in failed, derived, elsewhere, failed + x:
        with pytest.raises(ValueError, match=f"gate: gate {gate} was asked to fail"):
            array.asnumpy()
    npx.waitall()  # it has been raised
    failed[:] = x
    assert failed.tolist() == [1.0, 2.0]


def test_arrays_and_failures_go_to_streams_of_other_devices_and_back(gates: Gates) -> None:
    _core.add_simulated_devices()
    here, other = mx.Device(NAME), mx.Device("sim")
    x, passes, fails = there([1.0, 2.0]), gates.new(), gates.new()
    # Copies between two kinds of devices go through main memory, which is freed when they are done: the call waits.
    gates.open_when_blocked(passes)
    y = npx.gate(x, number=passes).to_device(other) * 2.0
    z = y.to_device(here) + x
    gates.open_when_blocked(fails)
    failed = npx.gate(x, number=fails, fails=True).to_device(other) * 2.0
    back = failed.to_device(here) + x
    assert z.tolist() == [3.0, 6.0]
    for array in failed, back:
        with pytest.raises(ValueError, match=f"gate: gate {fails} was asked to fail"):
            array.asnumpy()


def test_a_failure_that_nobody_reads_is_raised_by_waitall(gates: Gates) -> None:
    npx.waitall()
    x, gate = there([1.0, 2.0]), gates.new()
    with mx.config(debug_lines=True):
        npx.gate(x, number=gate, fails=True)
    gates.open(gate)
    with pytest.raises(ValueError, match=rf"gate {gate} was asked to fail\n.*test_device_streams\.py"):
        npx.waitall()
    npx.waitall()


def test_a_long_chain_of_failed_work_ends(gates: Gates) -> None:
    x, gate = there([1.0]), gates.new()
    y = npx.gate(x, number=gate, fails=True)
    for _ in range(20_000):
        y = y + 1.0
    gates.open(gate)
    with pytest.raises(ValueError, match="was asked to fail"):
        y.wait_to_read()


def test_a_panic_in_a_stream_is_an_error(accelerator: mx.library.Module) -> None:
    y = np.exp(there([5000.0]))
    with pytest.raises(RuntimeError, match="exp: panicked: the accelerator overheats"):
        y.wait_to_read()


def test_numbers_are_arguments_of_the_launch(gates: Gates) -> None:
    x, gate = there([1.0, 2.0]), gates.new()
    y = npx.gate(x, number=gate)
    results = [(factor * y + 0.5) for factor in (2.0, 3, 4)]
    gates.open(gate)
    assert [result.tolist() for result in results] == [[2.5, 4.5], [3.5, 6.5], [4.5, 8.5]]


def test_training_on_the_device_equals_training_on_the_cpu(accelerator: mx.library.Module) -> None:
    def trained(device: mx.Device) -> list[float]:
        generator = onp.random.default_rng(5)
        data = [onp.float32(generator.normal(size=64)) for _ in range(3)]
        w, x, head = (np.array(values).to_device(device) for values in data)
        w.attach_grad()
        for _ in range(10):
            with autograd.record():
                y = (w * x + w) * w - x
            y.backward(head)
            w -= 0.1 * w.grad
        values: list[float] = w.tolist()
        return values

    assert trained(mx.Device(NAME)) == trained(mx.cpu())


PROCESS = """
import os, sys
import mxnet as mx
from mxnet import np, npx
mx.library.load(sys.argv[1], verbose=False)
mx.library.load(sys.argv[2], verbose=False)
device = mx.Device("accelerator")
x = np.array([1.0, 2.0]).to_device(device)
x.wait_to_read()
y = npx.gate(x, number=1)
z = y + x
"""
FORK = """
import ctypes
import os
child = os.fork()
if child == 0:
    code = 1
    try:
        for use in lambda: x + x, lambda: z.asnumpy(), lambda: np.ones(3).to_device(device):
            try:
                use()
            except mx.error.DeviceError as error:
                assert "forked" in str(error) and "spawn" in str(error), error
            else:
                raise AssertionError("the device was used")
        npx.waitall()
        del x, y, z
        assert (np.ones(3) + 1).sum() == 6
        code = 0
    finally:
        os._exit(code)
assert os.waitpid(child, 0)[1] == 0
ctypes.CDLL(sys.argv[2]).open_gate(1)
assert z.tolist() == [2.0, 4.0]
"""


@pytest.mark.parametrize("rest", ["", "del x, y, z", FORK], ids=["held", "freed", "fork"])
def test_a_process_ends_or_forks_with_work_in_flight(gates: Gates, accelerator: mx.library.Module, rest: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore:This process:DeprecationWarning", "-c", PROCESS + rest, accelerator.path]
        + [str(gates.path)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# A device that works at once, whose streams and events are numbers. `lie` says which function lies.
LIAR = """
#include <string.h>
enum { NOT, NO_STREAM, NO_EVENT, NO_QUERY, NO_WAIT, NO_COPY };
static int lies, num_streams;
void lie(int which);
void lie(int which) { lies = which; }
int streams(void);
int streams(void) { return num_streams; }
static void *take(void *state, uint32_t id, size_t n)
{
    (void)state; (void)id; return aligned_alloc(64, (n + 63) & ~(size_t)63);
}
static void give(void *state, uint32_t id, void *block, size_t n) { (void)state; (void)id; (void)n; free(block); }
static int32_t move(void *state, uint32_t id, void *to, const void *from, size_t n)
{
    (void)state; (void)id; memcpy(to, from, n); return 0;
}
static void *make_stream(void *state, uint32_t id)
{
    (void)state; (void)id; return lies == NO_STREAM ? NULL : (void *)(uintptr_t)++num_streams;
}
static int32_t enqueue(void *state, void *stream, void *to, const void *from, size_t n)
{
    (void)state; (void)stream; memcpy(to, from, n); return lies == NO_COPY ? 9 : 0;
}
static void *record(void *state, void *stream)
{
    (void)state; (void)stream; return lies == NO_EVENT ? NULL : (void *)1;
}
static int32_t stream_wait(void *state, void *stream, void *event)
{
    (void)state; (void)stream; (void)event; return lies == NO_WAIT ? 9 : 0;
}
static int32_t query(void *state, void *event)
{
    (void)state; (void)event; return lies == NO_QUERY ? 9 : lies == NO_WAIT ? MX_MODULE_PENDING : MX_MODULE_OK;
}
static int32_t wait_event(void *state, void *event, char *message, size_t capacity)
{
    (void)state; (void)event; (void)message; (void)capacity; return 0;
}
static void free_event(void *state, void *event) { (void)state; (void)event; }
static int32_t twice(const mx_kernel_call *call)
{
    for (int64_t i = 0; i < call->outputs[0].shape[0]; i++)
        ((float *)call->outputs[0].data)[i] = 2 * ((float *)call->inputs[0].data)[i];
    return call->stream ? MX_MODULE_OK : MX_MODULE_FAILED;
}
"""
MEMORY = ".allocate = take, .free = give, .upload = move, .download = move, .copy = move"
STREAMS = {
    "make_stream": "make_stream",
    "enqueue_upload": "enqueue",
    "enqueue_download": "enqueue",
    "enqueue_copy": "enqueue",
    "record_event": "record",
    "stream_wait": "stream_wait",
    "query_event": "query",
    "wait_event": "wait_event",
    "free_event": "free_event",
}


def liar(name: str, names: list[str], size: str = "sizeof device") -> str:
    """The text of a module whose device has the functions of these names."""
    functions = "".join(f", .{field} = {STREAMS[field]}" for field in names)
    unused = "".join(f"(void){function};" for function in sorted({"twice", *STREAMS.values()}))
    body = f"""
    {unused}
    const mx_device device = {{.size = {size}, .name = "{name}", .count = 2, {MEMORY}{functions}}};
    host->add_device(host->context, &device);
    const mx_kernel_entry kernel = {{.size = sizeof kernel, .op = "square", .device = "{name}", .kernel = twice}};
    host->add_kernel(host->context, &kernel);
    return MX_MODULE_OK;"""
    return module(body, LIAR).replace('"test"', f'"{name}"')


@pytest.mark.parametrize(
    ("name", "present", "message"),
    [
        ("one", ["record_event"], "without `make_stream`, `enqueue_upload`.*`stream_wait`.*`free_event`: all"),
        ("most", [name for name in STREAMS if name != "query_event"], "`most` has streams without `query_event`:"),
    ],
)
def test_a_device_with_some_functions_of_streams_is_refused(
    build: Build, name: str, present: list[str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        mx.library.load(build(name, liar(name, present)), verbose=False)
    with pytest.raises(ValueError, match="unknown device type"):
        mx.Device(name)


@pytest.mark.parametrize("version", [1, 2])
def test_a_device_of_an_older_version_has_no_streams(build: Build, version: int) -> None:
    # What lies behind the end of the structure is not read.
    name = f"old{version}"
    source = liar(name, ["record_event"], "offsetof(mx_device, make_stream)")
    source = source.replace(".abi = MX_MODULE_ABI", f".abi = {version}").replace("call->stream ?", "!call->stream ?")
    mx.library.load(build(name, source), verbose=False)
    x = np.array([1.0, 2.0]).to_device(mx.Device(name))
    assert np.square(x).tolist() == [2.0, 4.0]


@pytest.fixture(scope="module")
def lying(build: Build) -> ctypes.CDLL:
    path = build("liar", liar("liar", list(STREAMS)))
    mx.library.load(path, verbose=False)
    return ctypes.CDLL(str(path))


def test_a_stream_of_a_thread_that_has_ended_serves_the_next(lying: ctypes.CDLL) -> None:
    def work() -> list[float]:
        values: list[float] = np.square(np.array([1.0, 3.0]).to_device(mx.Device("liar"))).tolist()
        return values

    assert work() == [2.0, 6.0]
    before = lying.streams()
    for _ in range(10):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        # The thread of Python has ended, that of the system is about to.
        while Path(f"/proc/self/task/{thread.native_id}").exists():
            os.sched_yield()
    assert lying.streams() < before + 10


@pytest.mark.parametrize(
    ("lie", "error", "message"),
    [
        (1, mx.error.DeviceError, r"liar\(1\): making a stream failed: its module gives none"),
        (2, RuntimeError, "its module gives no event after the work"),
        (3, RuntimeError, "its module returned status 9: its module does not say whether the work has ended"),
        (4, RuntimeError, "its module returned status 9: its stream cannot wait for an event"),
        (5, mx.error.DeviceError, r"liar\(0\): copying to it failed: its module returned status 9"),
    ],
)
def test_streams_that_lie_are_errors(lying: ctypes.CDLL, lie: int, error: type[Exception], message: str) -> None:
    device = mx.Device("liar", 1 if lie == 1 else 0)
    x = on_thread(lambda: np.square(np.array([1.0]).to_device(mx.Device("liar")))).result()
    lying.lie(lie)
    try:
        with pytest.raises(error, match=message):
            (np.square(x) if lie == 4 else np.square(np.array([1.0]).to_device(device))).asnumpy()
    finally:
        lying.lie(0)
    assert np.square(np.array([1.0]).to_device(device)).tolist() == [2.0]
