"""The namespace is that of the array API standard 2025.12: names, signatures, dtypes, shapes and values.

The oracle is array-api-strict, an implementation by the standard's authors on NumPy that refuses everything else.
"""

import inspect
import itertools
import warnings

import numpy as onp
import pytest

import mxnet as mx
from mxnet import np

strict = pytest.importorskip("array_api_strict")
pytest.importorskip("array_api_strict", minversion="2.6")

SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
REAL, COMPLEX = ["float32", "float64"], ["complex64", "complex128"]
DTYPES = ["bool", *SIGNED, *UNSIGNED, *REAL, *COMPLEX]
KINDS = ["bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric"]
SHAPES = [(), (0,), (1,), (5,), (2, 3), (3, 0), (2, 3, 4)]
# Elements that differ by more than this many roundings are wrong; sums here have at most 24 terms.
ROUNDINGS = 64


@pytest.fixture(autouse=True)
def numpys_dtypes():
    strict.set_array_api_strict_flags(api_version="2025.12")
    mx.npx.set_np(dtype=True)
    yield
    mx.npx.set_np()


def numbers(dtype, shape, seed=0):
    rng = onp.random.default_rng(seed)
    kind = onp.dtype(dtype).kind
    if kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if kind in "iu":
        return rng.integers(0 if kind == "u" else -9, 10, shape).astype(dtype)
    values = rng.standard_normal(shape)
    return (values if kind == "f" else values + 1j * rng.standard_normal(shape)).astype(dtype)


def special(dtype):
    """Extremes, zeros of both signs, infinities and NaN of a dtype."""
    dtype = onp.dtype(dtype)
    if dtype.kind == "b":
        return onp.array([True, False])
    if dtype.kind in "iu":
        info = onp.iinfo(dtype)
        return onp.array([0, 1, 2, 7, 100, info.max, info.min, info.max - 1], dtype=dtype)
    info = onp.finfo(dtype)
    values = [0.0, -0.0, 1, -1, 0.5, 1.5, 2.5, -2.5, onp.inf, -onp.inf, onp.nan, 3.7, -3.7]
    if dtype.kind == "c":
        return onp.array([complex(a, b) for a in values for b in values], dtype=dtype)
    return onp.array([*values, info.max, info.min, info.tiny, info.eps], dtype=dtype)


def host(x):
    return x.asnumpy() if isinstance(x, np.ndarray) else x._array if isinstance(x, type(strict.ones(1))) else x


def agree(call, *hosts, where="", roundings=ROUNDINGS, relative=False):
    """Assert that `call(namespace, *arrays)` has the same result in both namespaces.

    Elements may differ by `roundings` of the largest one, or of their own size if `relative`. False if the standard's
    namespace refuses the call, which ours need not.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = call(strict, *map(strict.asarray, hosts))
        except (TypeError, ValueError, IndexError, ZeroDivisionError):
            return False
        found = call(np, *map(np.asarray, hosts))
    groups = isinstance(expected, tuple | list)
    pairs = zip(expected, found, strict=True) if groups else [(expected, found)]
    for one, two in pairs:
        assert isinstance(two, np.ndarray) == isinstance(one, type(strict.ones(1))), (where, type(two))
        one, two = host(one), host(two)
        if not isinstance(one, onp.ndarray):
            assert one == two, where
            continue
        assert (two.dtype, two.shape) == (one.dtype, one.shape), where
        if one.dtype.kind not in "fc":
            onp.testing.assert_array_equal(two, one, err_msg=where)
            continue
        near = roundings * onp.finfo(one.dtype).eps
        parts = [(one.real, two.real), (one.imag, two.imag)] if one.dtype.kind == "c" else [(one, two)]
        with onp.errstate(all="ignore"):
            size = sum(onp.where(onp.isfinite(part), onp.abs(part), 0) for part, _ in parts)
            size = size if relative else onp.maximum(size, size.max(initial=1))
            for part, other in parts:
                right = (part == other) | (onp.isnan(part) & onp.isnan(other)) | (onp.abs(part - other) <= near * size)
                # Annex G of C leaves the sign of an infinity open if the other part is NaN.
                right |= onp.isnan(one) & onp.isinf(part) & onp.isinf(other)
                assert right.all(), (where, two[~right], one[~right])
    return True


def parameters(function):
    return [p for p in inspect.signature(function).parameters.values() if p.name != "self"]


# Names of array-api-strict itself.
ITS_OWN = ("ArrayAPIStrictFlags", "Device", "set_array_api_strict_flags", "get_array_api_strict_flags")
ITS_OWN += ("reset_array_api_strict_flags",)


@pytest.mark.parametrize("part", ["", "linalg", "fft", "ndarray"])
def test_every_function_takes_the_standards_arguments(part):
    if part == "ndarray":
        theirs, ours = type(strict.ones(1)), np.ndarray
        names = [n for n in dir(theirs) if n not in dir(object) and (n.startswith("__") or not n.startswith("_"))]
        names = sorted(set(names) - {"__slots__", "__weakref__", "__buffer__"})
    else:
        theirs, ours = (getattr(xp, part) if part else xp for xp in (strict, np))
        names = sorted(set(theirs.__all__) - set(ITS_OWN))
    assert len(names) > 10
    for name in names:
        required, given = getattr(theirs, name), getattr(ours, name)
        if not callable(required) or inspect.isclass(required):
            continue
        have = {p.name: p for p in parameters(given)}
        positional = [p for p in have.values() if p.kind <= p.POSITIONAL_OR_KEYWORD]
        rest = any(p.kind == p.VAR_POSITIONAL for p in have.values())
        for i, parameter in enumerate(parameters(required)):
            if parameter.kind == parameter.POSITIONAL_ONLY:
                assert rest or len(positional) > i, (name, parameter)
            elif parameter.kind != parameter.VAR_POSITIONAL:
                assert have[parameter.name].kind != parameter.POSITIONAL_ONLY, (name, parameter)


ELEMENTWISE = [
    name
    for name in strict.__all__
    if getattr(getattr(strict, name), "__module__", "").endswith("_elementwise_functions") and name != "clip"
]


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_functions_have_the_standards_dtypes_and_special_values(name):
    binary = len(parameters(getattr(strict, name))) == 2
    if not binary:
        # The sign of complex infinities is left open.
        dtypes = [d for d in DTYPES if name != "sign" or d not in COMPLEX]
        done = [
            agree(lambda xp, x: getattr(xp, name)(x), special(d), where=d, roundings=4, relative=True) for d in dtypes
        ]
        assert any(done)
        return
    done = False
    for one, two in itertools.product(DTYPES, DTYPES):
        x, y = special(one)[:40], special(two)[:40]
        if name == "pow" or "shift" in name:
            y = onp.clip(y, 0, 6).astype(two) if onp.dtype(two).kind in "iu" else y
        if name in ("floor_divide", "remainder"):
            y = y[y != 0]
        if name == "pow" and (one in COMPLEX or two in COMPLEX):
            # Powers of complex infinities are left open.
            x, y = numbers(one, (6,)), numbers(two, (6,), 1)
        call = lambda xp, x, y: getattr(xp, name)(x[:, None], y[None, :])  # noqa: E731
        done |= agree(call, x, y, where=f"{one}, {two}", roundings=4 if name != "pow" else 32, relative=True)
    assert done


@pytest.mark.parametrize("dtype", DTYPES)
def test_python_numbers_keep_the_dtype_of_the_array(dtype):
    x = numbers(dtype, (4,), 3)
    for number in (True, 2, 1.5, 1j):
        for name in ("add", "multiply", "divide", "equal", "less", "logical_and", "bitwise_or", "maximum"):
            agree(lambda xp, x: getattr(xp, name)(x, number), x, where=name)  # noqa: B023
            agree(lambda xp, x: getattr(xp, name)(number, x), x, where=name)  # noqa: B023
        agree(lambda xp, x: xp.where(xp.asarray([True, False, True, False]), x, number), x)  # noqa: B023
        agree(lambda xp, x: xp.result_type(x, number) == x.dtype, x)  # noqa: B023


def arguments(shape):
    """Arguments `axis` for an array, wrong ones too."""
    n = len(shape)
    return [None, *range(-n - 1, n + 1), *([(0, 1), (-1, 0)] if n > 1 else []), ()]


@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions_scans_and_orders(dtype):
    done = set()
    for shape in SHAPES:
        x = numbers(dtype, shape)
        for axis, keep in itertools.product(arguments(shape), (False, True)):
            for name in "sum prod mean std var max min all any count_nonzero argmax argmin".split():  # noqa: SIM905
                call = lambda xp, x: getattr(xp, name)(x, axis=axis, keepdims=keep)  # noqa: B023, E731
                if agree(call, x, where=f"{name} {shape} {axis}"):
                    done.add(name)
            for name in ("cumulative_sum", "cumulative_prod"):
                call = lambda xp, x: getattr(xp, name)(x, axis=axis, include_initial=keep)  # noqa: B023, E731
                agree(call, x, where=f"{name} {shape} {axis}")
            if isinstance(axis, int):
                agree(lambda xp, x: xp.sort(x, axis=axis, descending=keep), x)  # noqa: B023
                agree(lambda xp, x: xp.argsort(x, axis=axis, descending=keep), x)  # noqa: B023
        for asked in DTYPES:
            agree(lambda xp, x: xp.sum(x, dtype=getattr(xp, asked)), x)  # noqa: B023
            agree(lambda xp, x: xp.cumulative_prod(x, axis=0, dtype=getattr(xp, asked)), x)  # noqa: B023
        agree(lambda xp, x: xp.diff(x, n=2), x)
        agree(lambda xp, x: xp.diff(x, axis=0, prepend=x, append=x), x)
    assert len(done) >= 3


@pytest.mark.parametrize("dtype", DTYPES)
def test_shapes_searches_and_sets(dtype):
    for shape in SHAPES:
        x, y = numbers(dtype, shape), numbers(dtype, shape, 1)
        for axis in arguments(shape):
            agree(lambda xp, x: xp.flip(x, axis=axis), x)  # noqa: B023
            agree(lambda xp, x: xp.squeeze(x, axis=axis), x)  # noqa: B023
            agree(lambda xp, x: xp.roll(x, 2, axis=axis), x)  # noqa: B023
            agree(lambda xp, x: xp.expand_dims(x, axis=axis), x)  # noqa: B023
            agree(lambda xp, x: xp.unstack(x, axis=axis), x)  # noqa: B023
            agree(lambda xp, x, y: xp.concat([x, y], axis=axis), x, y)  # noqa: B023
            agree(lambda xp, x, y: xp.stack([x, y], axis=axis), x, y)  # noqa: B023
            if shape:
                agree(lambda xp, x, i: xp.take(x, i, axis=axis), x, onp.array([0, 0]))  # noqa: B023
                where = onp.zeros(shape, "int64")
                agree(lambda xp, x, i: xp.take_along_axis(x, i, axis=axis), x, where)  # noqa: B023
                agree(lambda xp, x: xp.repeat(x, 2, axis=axis), x)  # noqa: B023
        for name in ("unique_all", "unique_counts", "unique_inverse", "unique_values", "nonzero"):
            agree(lambda xp, x: getattr(xp, name)(x), x, where=name)  # noqa: B023
            fields = [getattr(getattr(xp, name)(xp.asarray(numbers(dtype, (3,)))), "_fields", None)
                      for xp in (strict, np)]  # fmt: skip
            assert fields[0] == fields[1], name
        agree(lambda xp, x, y: xp.isin(x, y), x, y)
        agree(lambda xp, x, y: xp.searchsorted(xp.sort(x), y, side="right"), x, y)
        agree(lambda xp, x, y: xp.searchsorted(x, y, sorter=xp.argsort(x)), x, y)
        agree(lambda xp, x: xp.reshape(x, (-1,)), x)
        agree(lambda xp, x: xp.permute_dims(x, tuple(range(x.ndim))[::-1]), x)
        agree(lambda xp, x: xp.moveaxis(x, 0, -1), x)
        agree(lambda xp, x: xp.tile(x, (2, 1)), x)
        agree(lambda xp, x: xp.broadcast_to(x, (2, *x.shape)), x)
        agree(lambda xp, x: [xp.tril(x, k=1), xp.triu(x, k=-1), x.mT], x)
        agree(lambda xp, x: xp.clip(x, 0, 1), x)
        agree(lambda xp, x: xp.clip(x, min=xp.asarray(1, dtype=x.dtype)), x)
        for asked in DTYPES:
            positive = onp.abs(x) if asked in UNSIGNED else x
            agree(lambda xp, x: xp.astype(x, getattr(xp, asked)), positive, where=asked)  # noqa: B023
    agree(lambda xp, x, y: xp.meshgrid(x, y, indexing="ij"), numbers(dtype, (3,)), numbers(dtype, (2,)))


def name_of(xp, dtype):
    return next(name for name in DTYPES if getattr(xp, name) == dtype)


def same(call):
    """What `call` gives or raises is the same in both namespaces."""
    results = []
    for xp in (strict, np):
        try:
            results.append(call(xp))
        except (TypeError, ValueError) as error:
            results.append(type(error).__mro__[-4:])
    assert results[0] == results[1] or isinstance(results[0], tuple), results


@pytest.mark.parametrize("dtype", DTYPES)
def test_questions_about_dtypes(dtype):
    for kind in [*KINDS, ("bool", "integral"), ()]:
        same(lambda xp: xp.isdtype(getattr(xp, dtype), kind))  # noqa: B023
    for other in DTYPES:
        same(lambda xp: xp.isdtype(getattr(xp, dtype), getattr(xp, other)))  # noqa: B023
        for third in DTYPES:
            same(lambda xp: name_of(xp, xp.result_type(*(getattr(xp, d) for d in (dtype, other, third)))))  # noqa: B023
    if dtype in REAL + COMPLEX:
        fields = ("bits", "eps", "max", "min", "smallest_normal")
        same(lambda xp: [getattr(xp.finfo(getattr(xp, dtype)), f) for f in fields])
        same(lambda xp: name_of(xp, xp.finfo(xp.ones(2, dtype=getattr(xp, dtype))).dtype))
    if dtype in SIGNED + UNSIGNED:
        same(lambda xp: [getattr(xp.iinfo(getattr(xp, dtype)), f) for f in ("bits", "max", "min")])
        same(lambda xp: name_of(xp, xp.iinfo(xp.ones(2, dtype=getattr(xp, dtype))).dtype))


def test_the_namespace_describes_itself():
    info = np.__array_namespace_info__()
    for kind in [*KINDS, ("bool", "integral"), None]:
        same(lambda xp: sorted(xp.__array_namespace_info__().dtypes(kind=kind)))  # noqa: B023
    same(lambda xp: xp.__array_namespace_info__().capabilities())
    assert np.empty(1, device=info.default_device()).device == info.default_device() in info.devices()
    for numpys in (True, False):
        mx.npx.set_np(dtype=numpys)
        made = {"real floating": np.ones(1), "complex floating": np.asarray(1j), "integral": np.asarray(1)}
        made["indexing"] = np.argmax(np.ones(2))
        assert info.default_dtypes() == {kind: x.dtype for kind, x in made.items()}


@pytest.mark.parametrize("dtype", [None, *DTYPES])
def test_arrays_that_are_made(dtype):
    def of(xp):
        return {} if dtype is None else {"dtype": getattr(xp, dtype)}

    for bounds in [(5,), (2, 7), (0, 10, 3), (5, 0), (5, 0, -2), (3.5,), (0, 1, 0.25)]:
        agree(lambda xp: xp.arange(*bounds, **of(xp)))  # noqa: B023
    for bounds in [(0, 1, 5), (0, 1, 1), (0, 1, 0), (-3.5, 7.25, 6), (5, -5, 11)]:
        agree(lambda xp: xp.linspace(*bounds, endpoint=bounds[2] != 6, **of(xp)))  # noqa: B023
    for shape in [(), 3, (2, 3), (0, 2)]:
        agree(lambda xp: [xp.zeros(shape, **of(xp)), xp.ones(shape, **of(xp))])  # noqa: B023
        agree(lambda xp: xp.zeros_like(xp.empty(shape, **of(xp))))  # noqa: B023
        for value in (True, 3, 2.5, 1j):
            if dtype is None or onp.can_cast(type(value), dtype, "same_kind"):
                agree(lambda xp: xp.full(shape, value, **of(xp)))  # noqa: B023
    for sizes in [(3,), (2, 3), (0,), (3, None)]:
        agree(lambda xp: xp.eye(*sizes, k=1, **of(xp)))  # noqa: B023
    for value in [True, 1, 2.5, 1j, [1, 2.5], [1, 2j], [[1, 2], [3, 4]], [], [True, 2]]:
        agree(lambda xp: xp.asarray(value, copy=True, **of(xp)))  # noqa: B023


MATRICES = [((), 3), ((), 0), ((2, 1), 3), ((0,), 2)]


@pytest.mark.parametrize("dtype", REAL + COMPLEX)
def test_linear_algebra(dtype):
    for batch, n in MATRICES:
        a = numbers(dtype, (*batch, n, n))
        a = (a @ a.swapaxes(-1, -2).conj() + n * onp.eye(n)).astype(dtype)
        for name in ("cholesky", "det", "inv", "eigvalsh", "svdvals", "pinv", "matrix_norm", "vector_norm"):
            agree(lambda xp, a: getattr(xp.linalg, name)(a), a, where=name, roundings=2000)  # noqa: B023
        agree(lambda xp, a: tuple(xp.linalg.slogdet(a)), a, roundings=2000)
        agree(lambda xp, a: xp.linalg.cholesky(a, upper=True), a, roundings=2000)
        agree(lambda xp, a: [xp.linalg.matrix_power(a, k) for k in (0, 1, 3)], a, roundings=2000)
        agree(lambda xp, a: [xp.linalg.trace(a, offset=k) for k in (0, 1, -5)], a)
        agree(lambda xp, a: [xp.linalg.diagonal(a, offset=k) for k in (0, 1, -2)], a)
        for shape in ((n,), (n, 2)):
            agree(lambda xp, a, b: xp.linalg.solve(a, b), a, numbers(dtype, shape), roundings=2000)
        for name in ("eigh", "qr", "svd", "slogdet"):
            fields = [getattr(xp.linalg, name)(xp.asarray(a))._fields for xp in (strict, np)]
            assert fields[0] == fields[1]
    for name in ("qr", "svd"):
        for shape in ((4, 2), (2, 4)):
            option = {"full_matrices": False} if name == "svd" else {"mode": "complete"}
            call = lambda xp, a: [xp.zeros_like(x) for x in getattr(xp.linalg, name)(a, **option)]  # noqa: B023, E731
            assert agree(call, numbers(dtype, shape))
    for order, axis in itertools.product((0, 1, 2, -1, 0.5, onp.inf), (None, 0, (0, 1))):
        call = lambda xp, x: xp.linalg.vector_norm(x, ord=order, axis=axis, keepdims=True)  # noqa: B023, E731
        assert agree(call, numbers(dtype, (2, 3)))
    for left, right in [((3,), (3,)), ((2, 3), (3,)), ((4, 1, 2, 3), (2, 3, 2)), ((0, 3), (3, 0)), ((2, 0), (0, 3))]:
        x, y = numbers(dtype, left), numbers(dtype, right, 1)
        assert agree(lambda xp, x, y: [xp.matmul(x, y), x @ y, xp.tensordot(x, y, axes=1)], x, y) or len(left) > 2
    x, y = numbers(dtype, (4, 1, 3)), numbers(dtype, (2, 3), 1)
    assert agree(lambda xp, x, y: [xp.vecdot(x, y), xp.vecdot(x, y[0, :]), xp.linalg.cross(x, y)], x, y)
    assert agree(lambda xp, x, y: xp.linalg.outer(x, y), x[0, 0], y[0])


@pytest.mark.parametrize("dtype", REAL + COMPLEX)
def test_fourier_transforms(dtype):
    done = set()
    for shape, norm in itertools.product(((5,), (2, 3)), ("backward", "ortho", "forward")):
        x = numbers(dtype, shape)
        for name, n in itertools.product("fft ifft rfft irfft hfft ihfft".split(), (None, 3, 8)):  # noqa: SIM905
            if agree(lambda xp, x: getattr(xp.fft, name)(x, n=n, axis=0, norm=norm), x):  # noqa: B023
                done.add(name)
        for name in "fftn ifftn rfftn irfftn".split():  # noqa: SIM905
            for sizes, axes in (None, None), ((4,), (0,)), (None, (-1,)):
                if agree(lambda xp, x: getattr(xp.fft, name)(x, s=sizes, axes=axes, norm=norm), x):  # noqa: B023
                    done.add(name)
        agree(lambda xp, x: [xp.fft.fftshift(x), xp.fft.ifftshift(x, axes=0)], x)
    assert len(done) == (3 if dtype in REAL else 7)
    if dtype in REAL:
        assert agree(lambda xp: [xp.fft.fftfreq(5, d=0.5, dtype=getattr(xp, dtype)), xp.fft.rfftfreq(4)])


@pytest.mark.parametrize("dtype", DTYPES)
def test_exchange_with_the_other_namespace(dtype):
    x = numbers(dtype, (2, 3))
    ours, theirs = np.asarray(x), strict.asarray(x)
    for found in (np.from_dlpack(theirs), np.from_dlpack(ours, copy=True), np.from_dlpack(ours, device=ours.device)):
        onp.testing.assert_array_equal(found.asnumpy(), x)
    onp.testing.assert_array_equal(strict.from_dlpack(ours)._array, x)
    assert ours.__dlpack_device__() == (1, 0)
    for version, copy, device in itertools.product((None, (1, 0), (2, 0)), (None, True, False), (None, (1, 0))):
        assert "dltensor" in repr(ours.__dlpack__(max_version=version, copy=copy, dl_device=device, stream=None))
