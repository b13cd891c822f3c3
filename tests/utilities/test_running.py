"""`check_consistency`, `check_speed` and `numeric_grad` of `test_utils`."""

import numpy as onp
import pytest

import mxnet as mx
from mxnet import np
from mxnet.test_utils import check_consistency, check_speed, numeric_grad

RUNS = [
    {"ctx": mx.cpu(0), "x": (3, 4), "w": (2, 4), "type_dict": {"x": "float64", "w": "float64"}},
    {"ctx": mx.cpu(1), "x": (3, 4), "w": (2, 4), "type_dict": {"x": "float32", "w": "float32"}},
    {"x": (3, 4), "w": (2, 4), "type_dict": {"x": "float16", "w": "float16"}},
]


def affine(x, w):
    return mx.npx.fully_connected(x, w, num_hidden=2, no_bias=True)


def test_runs_of_several_dtypes_and_devices_agree():
    outputs = check_consistency(affine, RUNS)
    assert [run[0].shape for run in outputs] == [(3, 2)] * 3
    assert [run[0].dtype.name for run in outputs] == ["float64", "float32", "float16"]
    values = {"x": onp.ones((3, 4)), "w": onp.full((2, 4), 0.5)}
    outputs = check_consistency(affine, RUNS, arg_params=values, grad_req="null", ground_truth=[onp.full((3, 2), 2.0)])
    assert (outputs[2][0] == 2).all()


@pytest.mark.parametrize("what", ["output", "gradient"])
def test_runs_that_differ_are_found_and_named(what, capsys):
    def changing(x, w):
        y = affine(x, w)
        if x.dtype != onp.float32:
            return y
        return y + 0.01 if what == "output" else y + 0.01 * (y - mx.npx.stop_gradient(y))

    with pytest.raises(AssertionError, match="run 1, "):
        check_consistency(changing, RUNS)
    check_consistency(changing, RUNS, raise_on_err=False)
    assert "run 1, " in capsys.readouterr().out


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(ValueError, match="runs of the same shapes"):
        check_consistency(affine, [{"x": (2, 3), "w": (1, 3)}, {"x": (3, 3), "w": (1, 3)}])
    with pytest.raises(ValueError, match="`grad_req` must be one of"):
        check_consistency(affine, RUNS, grad_req="none")


def test_differences_are_slopes():
    x, w = onp.array([[1.0, -2.0]]), onp.array([[3.0, 5.0], [-1.0, 0.5]])
    found = numeric_grad(lambda x, w: affine(x, w) ** 2, {"x": x}, {"w": np.array(w)}, dtype="float64")
    expected = 2 * (x @ w.T) @ w
    # A central difference of a square is exact; 1e-16 / 1e-4 is left of rounding, times values of about 100.
    onp.testing.assert_allclose(found["x"], expected, rtol=0, atol=1e-9)
    assert set(found) == {"x"}
    assert numeric_grad(np.exp, {"x": onp.zeros((2, 0))})["x"].shape == (2, 0)


@pytest.mark.parametrize("typ", ["whole", "forward"])
def test_calls_are_counted_and_timed(typ):
    calls = []

    def function(x):
        calls.append(mx.autograd.is_recording())
        return x * 2

    assert check_speed(function, N=4, typ=typ, x=(2, 3)) > 0
    assert calls == [typ == "whole"] * 5
    for arguments, message in (({"typ": "back"}, "`typ`"), ({"N": 0}, "`N`"), ({"grad_req": "null"}, "`grad_req`")):
        with pytest.raises(ValueError, match=message):
            check_speed(function, x=(2,), **arguments)
