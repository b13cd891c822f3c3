"""One expression, evaluated with NumPy and with this package under NumPy's promotion, and the two results compared."""

import warnings

import numpy as np

import mxnet as mx
from mxnet.util import np_default_dtype


def same(found, expected, rtol=0.0, what=""):
    """Our result against NumPy's: structure, shapes, dtypes and values."""
    if isinstance(expected, (tuple, list)):
        kind = list if isinstance(expected, list) else tuple  # classes derived from tuple have names of their own
        assert isinstance(found, kind), f"{what}: {type(found)}, not {type(expected)}"
        assert len(found) == len(expected), f"{what}: {len(found)} parts, not {len(expected)}"
        for i, (one, other) in enumerate(zip(found, expected, strict=True)):
            same(one, other, rtol, f"{what}[{i}]")
        return
    if isinstance(found, mx.np.ndarray):
        expected = np.asarray(expected)
        assert found.shape == expected.shape, f"{what}: shape {found.shape}, not {expected.shape}"
        assert found.dtype == expected.dtype, f"{what}: dtype {found.dtype}, not {expected.dtype}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # infinities minus infinities
            np.testing.assert_allclose(found.asnumpy(), expected, rtol=rtol, atol=rtol, err_msg=what)
        return
    assert not isinstance(expected, np.ndarray) or expected.ndim == 0, f"{what}: {found!r} is no array"
    assert found == expected, f"{what}: {found!r}, not {expected!r}"


def outcome(expression, module, names):
    """The value of an expression, or the error it raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's about empty slices; ours are stated as differences
        try:
            return eval(expression, {"np": module, "inf": np.inf, "nan": np.nan}, dict(names)), None
        except Exception as error:  # noqa: BLE001  # whatever is raised is what is compared
            return None, error


def both(expression, rtol=0.0, **names):
    """Evaluates `expression` over `np` and named arrays both ways; errors must be of NumPy's class."""
    ours = {name: mx.np.array(x) if isinstance(x, np.ndarray) else x for name, x in names.items()}
    expected, failure = outcome(expression, np, {k: x.copy() if hasattr(x, "copy") else x for k, x in names.items()})
    with np_default_dtype(True):
        found, error = outcome(expression, mx.np, ours)
    if failure is not None:
        assert isinstance(error, type(failure)), f"{expression}: NumPy raises {failure!r}, we {error!r} {found!r}"
        return
    if error is not None:
        raise error
    same(found, expected, rtol, expression)
