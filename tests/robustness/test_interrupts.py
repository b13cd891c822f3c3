"""Signals are noticed in the middle of calls that take long; arrays stay usable."""

import os
import signal

import pytest

from processes import run

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no such timers")

# The operation is still running when the call has ended: `in_flight` shows it.
WAITS = {
    "a wait for one operation": "np.sort(x).wait_to_read()",
    "an element": "np.sort(x)[5].item()",
    "a copy to the host": "np.sort(x).asnumpy()",
    "everything": "np.sort(x), mx.waitall()",
    "a factorisation, which raises its errors at the call": "np.linalg.inv(m)",
    "memory that others see": "np.sort(x).copyto(shown)",
}


@pytest.mark.parametrize("name", WAITS)
def test_ctrl_c_ends_a_call_before_the_operation_ends(name):
    run(
        f"""
        signal.signal(signal.SIGINT, signal.default_int_handler)
        x = np.random.uniform(size=(30_000_000,))
        m = np.random.uniform(size=(3000, 3000))
        kept = np.arange(10)
        shown = np.zeros(x.shape)
        onp.asarray(shown)
        mx.waitall()
        pid = os.getpid()
        if os.fork() == 0:
            time.sleep(0.1)
            os.kill(pid, signal.SIGINT)
            os._exit(0)
        try:
            {WAITS[name]}
        except KeyboardInterrupt:
            pass
        else:
            raise SystemExit("not interrupted")
        # An operation that has ended is counted for a moment after its waiter goes on.
        time.sleep(0.05)
        assert _core.engine_stats()["in_flight"] > 0
        assert (kept + 1).sum().item() == 55
        mx.waitall()
        assert np.sort(x)[0].item() <= x[0].item()
        os._exit(0)
        """
    )


# Some look every 10 ms only, so each takes 100 ms and more here: on a much faster machine three looks fit, too.
STEPS = {
    "a gradient": "y.backward()",
    "tolist": "x.tolist()",
    "a list of lists": "x.reshape(2000, 1000).tolist()",
    "a list of rows": "list(x[:200_000])",
    "a list of elements": "list(x[:200_000].flat)",
    "bytes": "wide.T.tobytes()",
    "an array of a list": "np.array(values)",
    "an array of nested lists": "np.array(nested)",
    "an array of an iterator": "np.fromiter(iter(values), 'float64')",
    "saving": "npx.save('a', dict.fromkeys('pqrstu', large))",
    "loading": "npx.load('b')",
    "compressing": "np.savez_compressed('c.npz', x=x)",
    "distinct elements": "np.unique(long)",
    "positions of distinct elements": "np.unique(x, return_inverse=True)",
    "counts": "np.bincount(many)",
    "positions on axes": "np.unravel_index(many, (2000, 1000))",
    "elements repeated by an array": "np.repeat(long, many % 2)",
    "a pseudo-inverse": "np.linalg.pinv(m)",
    "a choice by weights": "np.random.choice(2_000_000, 9, replace=False, p=p)",
    "decoding an image": "mx.image.imdecode(picture)",
}


@pytest.mark.parametrize("name", STEPS)
def test_signals_are_handled_several_times_in_a_call(name, tmp_path):
    done = run(
        f"""
        rng = onp.random.default_rng(3)
        x, k = np.array(rng.random(2_000_000)), np.array(rng.permutation(2_000_000))
        m, large = np.array(rng.random((500, 500))), np.ones((8_000_000,))
        many, long, wide = np.tile(k, 8), np.tile(x, 8), np.ones((4000, 5000))
        p = np.full((2_000_000,), 5e-7, dtype="float64")
        values, nested = [1.0] * 2_000_000, [[1.0] * 1000] * 2000
        if "picture" in {STEPS[name]!r}:
            pixels = rng.integers(0, 256, (3000, 2000, 3), dtype="uint8")
            picture = mx.image._imencode(pixels, 95, ".jpg")
        if "backward" in {STEPS[name]!r}:
            factor = np.ones((800, 5000))
            factor.attach_grad()
            with autograd.record():
                y = (factor.T @ factor).sum()
        if "load" in {STEPS[name]!r}:
            npx.save("b", {{"x": large, "y": large}})
        mx.waitall()
        count = 0

        def handler(*_):
            global count
            count += 1

        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
        before = count
        {STEPS[name]}
        found = count - before
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(found)
        """,
        cwd=tmp_path,
    )
    # One is handled after a call that looks at none.
    assert int(done.stdout) > 2


def test_work_that_an_interrupted_call_leaves_behind_harms_nothing():
    run(
        """
        rng = onp.random.default_rng(3)
        y = np.array(rng.random(3_000_000))
        expected = y.sum().item()

        class Stop(Exception):
            pass

        def handler(*_):
            raise Stop

        signal.signal(signal.SIGALRM, handler)
        for call in (np.unique, lambda x: np.unique(x, return_inverse=True)):
            signal.setitimer(signal.ITIMER_REAL, 0.02)
            try:
                call(y)
            except Stop:
                pass
            else:
                raise SystemExit("not interrupted")
            # A reader has the array still; a child, and a writer after it, find it whole.
            child = os.fork()
            if child == 0:
                signal.alarm(60)
                os._exit(int(y.sum().item() != expected or len(np.unique(y[:1000])) != 1000))
            assert os.waitpid(child, 0)[1] == 0
            assert y.sum().item() == expected
        y[:] = 1
        assert np.unique(y).tolist() == [1]
        """
    )


def test_an_interrupted_save_leaves_the_old_file(tmp_path):
    run(
        """
        x = np.ones((20_000_000,))
        npx.save("a", {"x": np.zeros(3)})

        class Stop(Exception):
            pass

        def handler(*_):
            raise Stop

        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.002)
        try:
            npx.save("a", {"x": x, "y": x, "z": x})
        except Stop:
            assert os.listdir() == ["a"]
            assert npx.load("a")["x"].tolist() == [0, 0, 0]
        else:
            raise SystemExit("not interrupted")
        """,
        cwd=tmp_path,
    )


def test_a_handler_of_sigterm_runs_in_the_middle_of_waiting():
    run(
        """
        x = np.random.uniform(size=(30_000_000,))
        x.wait_to_read()

        def handler(*_):
            time.sleep(0.05)
            assert _core.engine_stats()["in_flight"] > 0
            os._exit(43)

        signal.signal(signal.SIGTERM, handler)
        pid = os.getpid()
        if os.fork() == 0:
            time.sleep(0.1)
            os.kill(pid, signal.SIGTERM)
            os._exit(0)
        np.sort(x).wait_to_read()
        """,
        code=43,
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_no_interrupt_is_lost_at_any_time():
    run(
        """
        signal.signal(signal.SIGINT, signal.default_int_handler)
        import random
        rng = random.Random(4)
        x, m = np.ones((100_000,)), np.ones((50, 50))
        m.attach_grad()

        def step(k):
            if k == 0:
                np.cumsum(x).wait_to_read()
            elif k == 1:
                mx.waitall()
            elif k == 2:
                with autograd.record():
                    y = (m @ m).sum()
                y.backward()
            elif k == 3:
                np.linalg.svd(m), np.unique(x)
            elif k == 4:
                x[:10] = float(x[5])
                x.tolist()
            else:
                np.sort(x).sum().item(), repr(m)

        pid, lost = os.getpid(), 0
        for _ in range(60):
            delay = rng.random() * 0.02
            returned, ready = os.pipe()
            try:
                # Python drops an interrupt that comes while `os.fork` calls its hooks (`logging` has one).
                if os.fork() == 0:
                    os.read(returned, 1)
                    time.sleep(delay)
                    os.kill(pid, signal.SIGINT)
                    os._exit(0)
                os.write(ready, b"x")
                end = time.monotonic() + 20
                while time.monotonic() < end:
                    step(rng.randrange(6))
                lost += 1
            except KeyboardInterrupt:
                pass
            assert not autograd.is_recording()
            os.wait()
            os.close(returned)
            os.close(ready)
        assert lost == 0
        assert (np.ones(3) + 1).tolist() == [2, 2, 2]
        """
    )


def test_an_interrupted_with_statement_leaves_no_mode():
    run(
        """
        class Stop(Exception):
            pass

        def handler(*_):
            raise Stop

        signal.signal(signal.SIGALRM, handler)
        for scope in (autograd.record, autograd.train_mode):
            for k in range(200):
                try:
                    signal.setitimer(signal.ITIMER_REAL, 1e-4 + k * 1e-7)
                    while True:
                        with scope():
                            pass
                except Stop:
                    pass
                assert (autograd.is_recording(), autograd.is_training()) == (False, False), k
        """
    )
