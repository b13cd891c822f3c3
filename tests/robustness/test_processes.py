"""Forks, exits, signals: what happens to a process that has work in flight.

Each case runs in a process of its own, which must end by itself within the time.
"""

import os
import signal
import subprocess
import sys
import textwrap

import pytest

SECONDS = 120
PRELUDE = """
import os, sys, threading, time
import numpy as onp
import mxnet as mx
from mxnet import _core, np

def busy(n=3_000_000, steps=4):
    x = np.zeros((n,))
    for _ in range(steps):
        x = np.cumsum(x + 1)
    return x
"""
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")


def run(program, *, code=0, arguments=(), prelude=PRELUDE):
    """Runs a program; answers what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", prelude + textwrap.dedent(program), *arguments],
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


MODES = pytest.mark.parametrize("mode", ["adaptive", "async"])


@needs_fork
@MODES
def test_a_fork_with_work_in_flight_serves_both_processes(mode):
    run(
        """
        _core.set_engine_mode(sys.argv[1])
        kept = np.ones((1000,)) * 3
        x = busy()
        child = os.fork()
        if child == 0:
            assert kept.sum().item() == 3000
            assert x[0].item() == 4.0
            y = busy(300_000, 2)
            assert y.shape == (300_000,)
            mx.waitall()
            os._exit(17)
        assert kept.sum().item() == 3000
        busy(300_000, 2).wait_to_read()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 17
        assert x[0].item() == 4.0
        """,
        arguments=[mode],
    )


@needs_fork
def test_children_of_children_and_many_forks():
    run(
        """
        x = np.ones((100_000,))
        for i in range(20):
            y = x * i
            child = os.fork()
            if child == 0:
                if i % 5 == 0:
                    inner = os.fork()
                    if inner == 0:
                        os._exit(int((np.ones((50_000,)) * 2).sum().item() != 100_000))
                    assert os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1]) == 0
                os._exit(int(y.sum().item() != 100_000 * i))
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        """
    )


@needs_fork
def test_a_fork_while_other_threads_compute():
    run(
        """
        stop = threading.Event()

        def work():
            x = np.ones((50_000,))
            while not stop.is_set():
                (x * 2 + 1).sum().item()

        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for _ in range(10):
            child = os.fork()
            if child == 0:
                os._exit(int(np.ones((100_000,)).sum().item() != 100_000))
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        stop.set()
        for t in threads:
            t.join()
        """
    )


@needs_fork
def test_a_failure_before_a_fork_is_still_reported_after_it():
    run(
        """
        _core.set_engine_mode("async")
        bad = np.random.randint(np.array([5]), np.array([5]))
        child = os.fork()
        try:
            mx.waitall()
        except ValueError as error:
            assert "low >= high" in str(error)
        else:
            raise SystemExit("the failure was lost")
        if child == 0:
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        """
    )


POOL = """
import multiprocessing, concurrent.futures, sys
import mxnet as mx
from mxnet import np

def square_sum(n):
    x = np.ones((n,)) * 2
    return (x * x).sum().item()

def double(x):
    return x * 2

if __name__ == "__main__":
    method = sys.argv[1]
    context = multiprocessing.get_context(method)
    x = np.ones((2_000_000,))
    for _ in range(5):
        x = x * 1.5
    with context.Pool(2) as pool:
        assert pool.map(square_sum, [10, 1000, 100_000]) == [40, 4000, 400_000]
        back = pool.map(double, [np.ones((3,)), np.array([1, 2], dtype="int16")])
        assert [b.tolist() for b in back] == [[2, 2, 2], [2, 4]]
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as executor:
        assert list(executor.map(square_sum, [10, 20])) == [40, 80]
    assert abs(x[0].item() - 1.5 ** 5) < 1e-5
"""


@pytest.mark.parametrize("method", [pytest.param("fork", marks=needs_fork), "spawn"])
def test_process_pools_compute_and_exchange_arrays(method, tmp_path):
    # Spawned processes import the program by its path.
    program = tmp_path / "pool.py"
    program.write_text(POOL)
    done = subprocess.run(
        [sys.executable, str(program), method], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr


@MODES
@pytest.mark.parametrize("end", ["pass", "sys.exit(0)", "os._exit(0)"])
def test_exit_with_work_in_flight_is_quiet(mode, end):
    done = run(
        f"""
        _core.set_engine_mode(sys.argv[1])
        results = [busy() for _ in range(5)]
        shared = np.asarray(onp.ones(1_000_000)) * 2
        {end}
        """,
        arguments=[mode],
    )
    assert done.stdout == done.stderr == ""


@pytest.mark.parametrize("seed", range(4))
def test_exit_beside_threads_that_print_is_quiet(seed):
    done = run(
        """
        x = np.ones((100,))

        def work():
            while True:
                repr(x[:3]), np.sort(x), mx.waitall()

        for _ in range(6):
            threading.Thread(target=work, daemon=True).start()
        time.sleep(0.02 + 0.03 * int(sys.argv[1]))
        """,
        arguments=[str(seed)],
    )
    assert done.stderr == ""


@pytest.mark.parametrize("mode", ["adaptive", "async", "sync"])
def test_exit_with_threads_that_still_push_is_quiet(mode):
    # While the interpreter sleeps at its end, all other threads ask for its lock.
    done = run(
        """
        class Late:
            def __del__(self, sleep=time.sleep):
                sleep(0.3)

        late = Late()
        _core.set_engine_mode(sys.argv[1])

        def push():
            x = np.ones((20_000,))
            while True:
                x = x * 1.0

        def train():
            w = np.ones((100,))
            w.attach_grad()
            while True:
                with mx.autograd.record():
                    z = (w * w).sum()
                z.backward()

        for work in (push, push, train):
            threading.Thread(target=work, daemon=True).start()
        time.sleep(0.3)
        """,
        arguments=[mode],
    )
    assert done.stderr == ""


# Calls of ours that call Python code, which gives up the interpreter's lock in `pause`.
CALLBACKS = {
    "a gradient": "gradient()",
    "an array of an object": "np.array(Slow())",
    "an operand": "np.ones(3) + Slow()",
    "a shape": "np.zeros(Slow())",
    "an index": "np.ones(3)[Slow()]",
    "an iterator": "np.fromiter((pause() or 1.0 for _ in range(3)), 'float64')",
    "a compiled function": "mx.jit(lambda x: pause() or x + 1)(np.ones(3))",
    "a method for functions": "np.concatenate([Slow(), np.ones(3)])",
}


@pytest.mark.parametrize("name", CALLBACKS)
def test_exit_with_threads_in_python_code_below_ours_is_quiet(name):
    # While the interpreter sleeps at its end, all other threads ask for its lock.
    done = run(
        f"""
        class Late:
            def __del__(self, sleep=time.sleep):
                sleep(0.3)

        late = Late()

        def pause(sleep=time.sleep):
            sleep(0.001)

        class Slow:
            def __array__(self, dtype=None, copy=None):
                return pause() or onp.ones(3)

            def __len__(self):
                return pause() or 1

            def __getitem__(self, i):
                if i > 0:
                    raise IndexError
                return pause() or 2

            def __index__(self):
                return pause() or 1

        class Double(mx.autograd.Function):
            def forward(self, x):
                return pause() or x * 2

            def backward(self, dy):
                return pause() or dy * 2

        def gradient():
            x = np.ones(3)
            x.attach_grad()
            with mx.autograd.record():
                y = Double()(x)
            y.backward()

        def loop():
            while True:
                {CALLBACKS[name]}

        {CALLBACKS[name]}
        for _ in range(3):
            threading.Thread(target=loop, daemon=True).start()
        time.sleep(0.1)
        """
    )
    assert done.stderr == ""


@pytest.mark.parametrize(
    "last",
    [
        "kept = np.asarray(onp.ones(100))",
        "kept = np.ones(3); kept.attach_grad()",
        "x = np.ones(3); x.attach_grad()\nwith mx.autograd.record(): kept = [x * 2, x[1:]]",
        "kept = mx.jit(lambda x: x + 1); kept(np.ones(3))",
        "kept = mx.gluon.Trainer([mx.gluon.Parameter('w', shape=(2,))], 'sgd')",
        "class Late:\n    x = np.ones(3)\n    def __del__(self): (self.x + 1).sum().item()\nkept = Late()",
    ],
)
@pytest.mark.parametrize("way", ["cycle", "exception", "module"])
def test_objects_that_outlive_the_program_end_quietly(last, way):
    ends = {
        "cycle": "kept = [kept]; kept.append(kept); import gc; gc.disable()",
        "exception": "raise KeyError(kept)",
        "module": "sys.modules['kept_until_the_end'] = kept",
    }
    # The first use of Python's lock by the library may be the one that ends an object.
    program = f"import sys\nimport numpy as onp\nimport mxnet as mx\nfrom mxnet import np\n{last}\n{ends[way]}\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == (way == "exception")
    assert "panicked" not in done.stderr
    assert done.stderr.count("Traceback") == (way == "exception")


def test_an_uncaught_failure_ends_the_process_with_its_traceback():
    done = run(
        """
        _core.set_engine_mode("async")
        np.random.randint(np.array([5]), np.array([5])).asnumpy()
        """,
        code=1,
    )
    assert "ValueError" in done.stderr
    assert "low >= high at element 0: 5 and 5" in done.stderr


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="the system has no such signals")
@pytest.mark.parametrize("wait", ["x.wait_to_read()", "mx.waitall()", "x.asnumpy()", "x[0].item()", "float(x[0])"])
def test_ctrl_c_interrupts_a_wait_and_the_process_lives(wait):
    run(
        f"""
        import signal

        # A parent in the background makes its children ignore the signal.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _core.set_engine_mode("async")
        _core.set_num_threads(2)
        # Long to compute, small to keep: pushing does not wait for room.
        big, x = np.ones((20_000_000,)), np.zeros((1,))
        for _ in range(250):
            x = x + big.std()
        main = threading.main_thread().ident

        def interrupt():
            time.sleep(0.4)
            signal.pthread_kill(main, signal.SIGINT)

        threading.Thread(target=interrupt).start()
        start = time.monotonic()
        try:
            {wait}
        except KeyboardInterrupt:
            waited = time.monotonic() - start
        else:
            raise SystemExit("the wait was not interrupted")
        assert waited < 5, waited
        assert (np.ones((10,)) + 1).sum().item() == 20
        os._exit(0)
        """
    )


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="the system has no such signals")
def test_a_handler_that_raises_its_own_error_interrupts_a_wait():
    run(
        """
        import signal

        class Alarm(Exception):
            pass

        def ring(number, frame):
            raise Alarm("time is up")

        signal.signal(signal.SIGALRM, ring)
        _core.set_engine_mode("async")
        # Long to compute, small to keep: pushing does not wait for room.
        big, x = np.ones((20_000_000,)), np.zeros((1,))
        for _ in range(250):
            x = x + big.std()
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        try:
            x.wait_to_read()
        except Alarm as error:
            assert str(error) == "time is up"
        else:
            raise SystemExit("the handler's error was lost")
        os._exit(0)
        """
    )


def test_importing_starts_no_thread_and_forks_nothing():
    run(
        """
        import _thread
        assert threading.active_count() == 1
        assert _core.engine_stats()["workers"] == 0
        assert _core.engine_stats()["pushed"] == 0
        """
    )


def test_the_number_of_threads_follows_the_environment_and_the_affinity():
    program = "print(_core.num_threads())"
    environment = {**os.environ, "MXNET_NUM_THREADS": "3"}
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + program],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env=environment,
        check=True,
    )
    assert done.stdout.strip() == "3"


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of memory is set as Linux does")
def test_sizes_that_data_asks_for_are_memory_errors():
    run(
        """
        import resource
        resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
        for call in (
            lambda: np.bincount([10**13]),
            lambda: np.bincount([1], [0.5], minlength=10**13),
            lambda: np.histogram2d(np.ones(1, dtype="float64"), np.ones(1, dtype="float64"), bins=10**7),
            lambda: np.histogramdd(np.ones((1, 3)), bins=10**5),
            lambda: np.array_split(np.ones(5), 10**13),
        ):
            try:
                call()
            except MemoryError:
                continue
            raise AssertionError("nothing is raised")
        assert np.bincount([3]).tolist() == [0, 0, 0, 1]
        """
    )


def test_functions_go_to_other_processes():
    done = run(
        """
        import pickle
        functions = [np.mean, np.linalg.inv, np.linalg.norm, np.fft.fft, np.random.uniform, np.add, mx.npx.softmax]
        for function in functions:
            assert pickle.loads(pickle.dumps(function)) is function
        import multiprocessing
        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print([x.tolist() for x in pool.map(np.linalg.inv, [np.eye(2), np.eye(1) * 2])])
        """
    )
    assert done.stdout.strip() == "[[[1.0, 0.0], [0.0, 1.0]], [[0.5]]]"
