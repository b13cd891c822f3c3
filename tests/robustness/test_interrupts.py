"""Signals are noticed in the middle of calls that take long; arrays stay usable."""

import signal

import pytest

from processes import run

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no such timers")

STEPS = {
    "tolist": "x.tolist()",
    "an array of a list": "np.array(values)",
    "an array of nested lists": "np.array(nested)",
    "saving": "npx.save('a', {'x': x, 'y': x, 'z': x})",
    "loading": "npx.load('a')",
}


@pytest.mark.parametrize("name", STEPS)
def test_signals_are_handled_several_times_in_a_call(name, tmp_path):
    done = run(
        f"""
        x = np.ones((10_000_000,))
        values = [1.0] * 3_000_000
        nested = [[1.0] * 100] * 20_000
        npx.save("a", {{"x": x, "y": x, "z": x}})
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
