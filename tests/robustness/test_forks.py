"""`os.fork` beside threads that are in the middle of something: the child works, and finds whole arrays."""

import os

import pytest

from processes import run

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")

# `forks(n, of_child)` forks while other threads work; a child that hangs is ended by its alarm.
FORKS = """
def forks(count, of_child, seconds=20):
    for i in range(count):
        child = os.fork()
        if child == 0:
            signal.alarm(seconds)
            of_child()
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status == 0, (i, status)

def beside(work, count, of_child):
    stop = threading.Event()

    def loop():
        while not stop.is_set():
            work()

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        forks(count, of_child)
    finally:
        stop.set()
        thread.join()
"""

FIRST_CALLS = {
    "of NumPy's arrays": "np.ones(3) + onp.ones(3)",
    "of NumPy's numbers": "np.ones(3) * onp.float32(2)",
    "dtype": "np.ones(3).astype('int32').dtype, np.ones(3, dtype='bfloat16').dtype",
    "printing": "repr(np.ones(3))",
    "an error": "pytest_raises(lambda: np.ones(2) + np.ones(3))",
    "index arrays": "np.ones(3)[onp.array([0, 1])]",
    "sorting": "np.ones(3).sort()",
    "drawing": "np.random.uniform(size=(2,)), np.random.default_rng(3).normal()",
    "ufuncs": "np.add(np.ones(3), 1, where=np.array([True, False, True])), np.add.reduce(np.ones(3))",
    "gradients": "gradients()",
}


def test_parts_that_are_compiled_in_a_child_are_not_taken_for_those_of_the_parent():
    run("""
from mxnet import _graph_passes

def compile(scale):
    mx.graph.register_partitioner("products", lambda node: node.op == "exp", lambda part: lambda x: x * scale)
    net = mx.gluon.nn.HybridLambda(np.exp)
    net.optimize_for(np.ones(1), backend="products")
    (name,) = _graph_passes._parts
    return name

reader, writer = os.pipe()
child = os.fork()
if child == 0:
    signal.alarm(20)
    os.write(writer, compile(2).encode())
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
name = os.read(reader, 1000).decode()
assert name and name != compile(3)
""")


@pytest.mark.parametrize("name", FIRST_CALLS)
def test_beside_the_first_call_of_another_thread(name):
    run(
        FORKS
        + f"""
def pytest_raises(call):
    try:
        call()
    except ValueError:
        pass

def gradients():
    x = np.ones(3)
    x.attach_grad()
    with autograd.record():
        y = (x * x).sum()
    y.backward()

def first():
    {FIRST_CALLS[name]}

sys.setswitchinterval(1e-6)
threads = [threading.Thread(target=first) for _ in range(2)]
for thread in threads:
    thread.start()
forks(4, first)
for thread in threads:
    thread.join()
"""
    )


WORK = {
    "an operation": "np.add(x, 1, out=x)",
    "a copy to the host": "x.asnumpy()",
    "sorting": "np.sort(x)",
    "training": "train()",
    "saving": "npx.save('saved', {'x': x})",
    "positions": "np.nonzero(x)",
    "a compiled function": "compiled(x)",
    "compiling": "mx.jit(lambda a: np.tanh(a) * 2)(x[:3])",
}


@pytest.mark.parametrize("mode", ["adaptive", "async", "sync"])
@pytest.mark.parametrize("work", WORK)
def test_beside_work_on_the_same_array(work, mode, tmp_path):
    run(
        FORKS
        + f"""
_core.set_engine_mode(sys.argv[1])
x, w = np.ones((400_000,)), np.ones((400_000,))
w.attach_grad()
x.wait_to_read()
compiled = mx.jit(lambda a: np.log(a).sum())

def train():
    with autograd.record():
        z = (w * x).sum()
    z.backward()

def of_child():
    found = x.asnumpy()
    # One version of the array, not a mixture of two.
    assert (found == found[0]).all()
    x[:] = 2
    w.grad[:] = 1
    assert x[5].item() == 2 and w.grad[0].item() == 1
    train()
    assert w.grad[0].item() == 2
    assert abs(compiled(x[:3]).item() - 3 * 0.693147) < 1e-4

beside(lambda: {WORK[work]}, 5, of_child)
""",
        mode,
        cwd=tmp_path,
    )


def test_a_fork_beside_a_thread_whose_backward_function_waits_for_the_forking_thread():
    run(
        FORKS
        + """
entered, forked = threading.Event(), threading.Event()

class Waits(autograd.Function):
    def forward(self, x):
        return x * 2

    def backward(self, dy):
        entered.set()
        assert forked.wait(60)
        return dy * 2

def work():
    x = np.ones(3)
    x.attach_grad()
    with autograd.record():
        y = Waits()(x)
    y.backward()
    assert x.grad.tolist() == [2, 2, 2]

thread = threading.Thread(target=work)
thread.start()
entered.wait()
start = time.monotonic()
forks(1, lambda: np.ones(3).sum().item())
assert time.monotonic() - start < 30
forked.set()
thread.join()
"""
    )


def test_children_of_a_backward_function_compute():
    run(
        FORKS
        + """
class Forks(autograd.Function):
    def forward(self, x):
        return x * 2

    def backward(self, dy):
        forks(2, lambda: (np.ones(100_000) * 2).sum().item())
        return dy * 2

x = np.ones(3)
x.attach_grad()
with autograd.record():
    y = Forks()(x)
y.backward()
assert x.grad.tolist() == [2, 2, 2]
"""
    )
