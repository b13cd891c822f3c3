"""Functions drawn at random, on arrays drawn at random, give what NumPy gives: value, dtype, shape, class of error.

Arrays come in every dtype that NumPy shares with us, of 0 to 4 axes (empty ones too), with special values, and also
transposed, reversed, strided and broadcast; scalars are Python's. The package is in its NumPy mode.
"""

import operator
import warnings

import hypothesis.strategies as st
import numpy as onp
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis.extra import numpy as hnp

import mxnet as mx

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
DTYPES = ["bool", *INTEGERS, *FLOATS, *COMPLEX]
PRECISION = {"float16": 4e-3, "float32": 2e-5, "float64": 1e-11, "complex64": 2e-5, "complex128": 1e-11}
RAISED = (IndexError, OverflowError, ZeroDivisionError, ValueError, TypeError)

UNARY = """
    absolute negative positive sign square sqrt cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos
    arctan sinh cosh tanh arcsinh arccosh arctanh floor ceil trunc rint fabs reciprocal conjugate degrees radians
    isnan isinf
    isfinite signbit logical_not invert real imag angle nan_to_num isneginf isposinf
""".split()  # noqa: SIM905
BINARY = """
    add subtract multiply divide floor_divide remainder fmod power maximum minimum fmax fmin arctan2 hypot logaddexp
    logaddexp2 copysign nextafter equal not_equal less less_equal greater greater_equal logical_and logical_or
    logical_xor bitwise_and bitwise_or bitwise_xor left_shift right_shift gcd lcm heaviside float_power divmod
""".split()  # noqa: SIM905
OPERATORS = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
    operator.and_, operator.or_, operator.xor, operator.lt, operator.le, operator.eq, operator.ne, operator.gt,
    operator.ge,
]  # fmt: skip
REDUCTIONS = """
    sum prod mean var std max min any all argmax argmin ptp count_nonzero nansum nanmax nanmean median
""".split()  # noqa: SIM905
CUMULATIVE = "cumsum cumprod nancumsum".split()  # noqa: SIM905


# Kinds of element left out, and why.
KINDS_LEFT_OUT = {
    "ptp": "b",  # no difference of truth values on either side, with different classes of error
    "round": "b",  # NumPy makes float16 of truth values, or fails by the number of decimals
    "median": "b",  # NumPy takes the mean of truth values, and fails on empty ones
}
# NumPy takes an array without axes for one with a single element; we name the axis that there is not.
SCALARS_LEFT_OUT = ("triu", "tril", "repeat", "take", "diff")


def numbers(dtype: str) -> st.SearchStrategy:
    """Small numbers and the special ones of the dtype."""
    kind = onp.dtype(dtype).kind
    if kind == "b":
        return st.booleans()
    if kind in "iu":
        limits = onp.iinfo(dtype)
        return st.sampled_from([0, 1, 2, 3, 7, 100, int(limits.min), int(limits.max), max(-1, int(limits.min))])
    small = st.floats(-8, 8, width=16)
    special = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, float("nan"), float("inf"), float("-inf"), 1e-3, 100.0])
    one = st.one_of(small, special)
    # Parts of complex numbers are finite: what NumPy does with infinite ones differs from one of its builds to another.
    return st.builds(complex, small, small) if kind == "c" else one


@st.composite
def pairs(draw, dtypes=DTYPES, shape=None, max_dims=4):
    """The same array for NumPy and for us, the strides included."""
    dtype = draw(st.sampled_from(dtypes))
    if shape is None:
        shape = draw(hnp.array_shapes(min_dims=0, max_dims=max_dims, min_side=0, max_side=4))
    host = draw(hnp.arrays(dtype, shape, elements=numbers(dtype), fill=st.nothing()))
    both = host, mx.np.array(host, dtype=dtype)
    layouts = ["as it is", "transposed", "reversed", "strided", "broadcast"] if shape else ["as it is"]
    layout = draw(st.sampled_from(layouts))
    if layout == "transposed":
        return tuple(array.T for array in both)
    if layout == "reversed":
        return tuple(array[::-1] for array in both)
    if layout == "strided":
        return tuple(array[..., ::2] for array in both)
    if layout == "broadcast":
        return tuple(
            module.broadcast_to(array, (2, *array.shape)) for module, array in zip((onp, mx.np), both, strict=True)
        )
    return both


def outcome(function, *args, **options):
    """What the function gives, or the class of the error that it raises."""
    try:
        result = function(*args, **options)
        if isinstance(result, mx.np.ndarray):
            result.wait_to_read()
        return result, None
    except RAISED as error:
        return error, next(kind for kind in RAISED if isinstance(error, kind))


def host(value):
    return value.asnumpy() if isinstance(value, mx.np.ndarray) else value


def compare(name, expected, found):
    """Both raised errors of one class, or gave arrays of one dtype, one shape and the same values."""
    (expected, error), (found, our_error) = expected, found
    if error is not None:
        assert our_error is not None, f"{name}: NumPy raises {expected!r}, we give {found!r}"
        assert isinstance(found, error), f"{name}: NumPy raises {expected!r}, we {found!r}"
        return
    assert our_error is None, f"{name}: NumPy gives {expected!r}, we raise {found!r}"
    if isinstance(expected, tuple | list):
        assert len(expected) == len(found)
        for one, other in zip(expected, found, strict=True):
            compare(name, (one, None), (other, None))
        return
    expected, found = onp.asarray(expected), onp.asarray(host(found))
    assert found.dtype == expected.dtype, f"{name}: dtype {found.dtype}, NumPy's {expected.dtype}"
    assert found.shape == expected.shape, f"{name}: shape {found.shape}, NumPy's {expected.shape}"
    if expected.dtype.kind == "c":  # part by part: an infinite part makes the whole infinite for the comparison
        compare(name, (expected.real, None), (found.real, None))
        compare(name, (expected.imag, None), (found.imag, None))
        return
    precision = PRECISION.get(str(expected.dtype), 0)
    onp.testing.assert_allclose(found, expected, rtol=precision, atol=precision, err_msg=name)


def check(name, expected_function, function, expected_args, args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with onp.errstate(all="ignore"):
            compare(name, outcome(expected_function, *expected_args, **options), outcome(function, *args, **options))


def random_cases(examples):
    return settings(
        max_examples=examples, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None
    )


@pytest.fixture(autouse=True)
def numpy_mode():
    with mx.util.np_default_dtype(True):
        yield


@pytest.mark.parametrize("name", UNARY)
@random_cases(30)
@given(data=st.data())
def test_unary(name, data):
    host, ours = data.draw(pairs())
    # The inverse of integer zero is what the processor makes of an infinity: it differs from dtype to dtype in NumPy.
    assume(name != "reciprocal" or host.dtype.kind not in "iu" or bool((host != 0).all()))
    check(f"{name}({host!r})", getattr(onp, name), getattr(mx.np, name), [host], [ours])


@pytest.mark.parametrize("name", BINARY)
@random_cases(60)
@given(data=st.data())
def test_binary(name, data):
    host, ours = data.draw(pairs(max_dims=2))
    other = data.draw(st.one_of(pairs(shape=host.shape), pairs(shape=()), pairs(max_dims=2), scalars()))
    second, our_second = other if isinstance(other, tuple) else (other, other)
    arguments = [[host, second], [ours, our_second]]
    if data.draw(st.booleans()):
        arguments = [side[::-1] for side in arguments]
    check(f"{name}{tuple(arguments[0])!r}", getattr(onp, name), getattr(mx.np, name), *arguments)


def scalars():
    return st.sampled_from([0, 1, -1, 2, 3, 300, 0.0, 0.5, -1.5, True, False, 2j, float("nan"), float("inf")])


@pytest.mark.parametrize("function", OPERATORS)
@random_cases(40)
@given(data=st.data())
def test_operators_with_scalars_and_arrays_on_either_side(function, data):
    host, ours = data.draw(pairs(max_dims=2))
    second = data.draw(st.one_of(scalars(), pairs(shape=()).map(lambda pair: pair[0][()])))
    if data.draw(st.booleans()):
        check(f"{function.__name__}({host!r}, {second!r})", function, function, [host, second], [ours, second])
    else:
        check(f"{function.__name__}({second!r}, {host!r})", function, function, [second, host], [second, ours])


@st.composite
def axes(draw, ndim, several=True):
    """None, an axis in or out of range, or several axes."""
    one = st.integers(-ndim - 1, ndim)
    choices = [st.none(), one]
    if several:
        choices.append(st.lists(one, max_size=3).map(tuple))
    return draw(st.one_of(choices))


@pytest.mark.parametrize("name", REDUCTIONS)
@random_cases(60)
@given(data=st.data())
def test_reductions(name, data):
    host, ours = data.draw(pairs(max_dims=3))
    # On an array without axes NumPy lets axis 0 pass in reductions, but not in means: we let it pass in both.
    means = name in ("mean", "var", "std", "nanmean") and host.ndim == 0
    options = {"axis": None if means else data.draw(axes(host.ndim, several=not name.startswith("arg")))}
    if data.draw(st.booleans()):
        options["keepdims"] = data.draw(st.booleans())
    if name in ("sum", "prod", "max", "min") and data.draw(st.booleans()):
        options["initial"] = data.draw(st.sampled_from([0, 1, 3]))
    assume(host.dtype.kind not in KINDS_LEFT_OUT.get(name, "") and not (name == "median" and options["axis"] == ()))
    # NumPy lets axis 0 of an array without axes pass, but not the axes (0,); with `initial` we let these pass, too.
    assume(not (host.ndim == 0 and "initial" in options and options["axis"] in ((0,), (-1,))))
    if name in ("sum", "prod") and data.draw(st.booleans()):
        options["dtype"] = data.draw(st.sampled_from(["float64", "complex128", "int64"]))
        # We multiply before real numbers become complex or the other way about, NumPy does afterwards.
        assume(name != "prod" or (options["dtype"] == "complex128") == (host.dtype.kind == "c"))
    description = f"{name}({host!r}, {options})"
    # The order in which float16 is summed is not NumPy's: it would have to be as inaccurate as NumPy's.
    if host.dtype == "float16":
        host, ours = host.astype("float32"), ours.astype("float32")
    check(description, getattr(onp, name), getattr(mx.np, name), [host], [ours], **options)


@pytest.mark.parametrize("name", CUMULATIVE)
@random_cases(40)
@given(data=st.data())
def test_cumulative(name, data):
    host, ours = data.draw(pairs(max_dims=3, dtypes=[dtype for dtype in DTYPES if dtype != "float16"]))
    options = {"axis": data.draw(axes(host.ndim, several=False))}
    check(f"{name}({host!r}, {options})", getattr(onp, name), getattr(mx.np, name), [host], [ours], **options)


SHAPES = {
    "reshape": lambda data, a: [data.draw(st.sampled_from([(-1,), (2, -1), (0, -1), (a.size,), (1, a.size), (3, 5)]))],
    "transpose": lambda data, a: [data.draw(st.permutations(range(a.ndim)))],
    "swapaxes": lambda data, a: [data.draw(st.integers(-3, 3)), data.draw(st.integers(-3, 3))],
    "moveaxis": lambda data, a: [data.draw(st.integers(-3, 3)), data.draw(st.integers(-3, 3))],
    "expand_dims": lambda data, a: [data.draw(axes(a.ndim + 1))],
    "squeeze": lambda data, a: [data.draw(axes(a.ndim))],
    "ravel": lambda data, a: [],
    "flip": lambda data, a: [data.draw(axes(a.ndim))],
    "roll": lambda data, a: [data.draw(st.integers(-5, 5)), data.draw(axes(a.ndim, several=False))],
    "repeat": lambda data, a: [data.draw(st.integers(-1, 3)), data.draw(axes(a.ndim, several=False))],
    "tile": lambda data, a: [data.draw(st.lists(st.integers(0, 3), max_size=3))],
    "rot90": lambda data, a: [data.draw(st.integers(-5, 5))],
    "diagonal": lambda data, a: [data.draw(st.integers(-3, 3))],
    "trace": lambda data, a: [data.draw(st.integers(-3, 3))],
    "triu": lambda data, a: [data.draw(st.integers(-3, 3))],
    "tril": lambda data, a: [data.draw(st.integers(-3, 3))],
    "array_split": lambda data, a: [data.draw(st.integers(0, 3)), data.draw(st.integers(-2, 2))],
    "atleast_2d": lambda data, a: [],
    "broadcast_to": lambda data, a: [data.draw(st.sampled_from([a.shape, (2, *a.shape), (3,), ()]))],
    "sort": lambda data, a: [data.draw(axes(a.ndim, several=False))],
    "unique": lambda data, a: [],
    "diff": lambda data, a: [data.draw(st.integers(0, 3))],
    "nonzero": lambda data, a: [],
    "flatnonzero": lambda data, a: [],
    "argwhere": lambda data, a: [],
    "take": lambda data, a: [
        data.draw(st.lists(st.integers(-3, 3), max_size=3)),
        data.draw(axes(a.ndim, several=False)),
    ],
    "clip": lambda data, a: [data.draw(st.sampled_from([0, 1, None, -1])), data.draw(st.sampled_from([2, 5, None]))],
    "round": lambda data, a: [data.draw(st.integers(-1, 3))],
    "append": lambda data, a: [data.draw(st.sampled_from([1, [1, 2], 2.5]))],
    "delete": lambda data, a: [data.draw(st.integers(-3, 3)), data.draw(axes(a.ndim, several=False))],
    "insert": lambda data, a: [data.draw(st.integers(-2, 2)), 1, data.draw(axes(a.ndim, several=False))],
    "pad": lambda data, a: [
        data.draw(st.integers(0, 2)),
        data.draw(st.sampled_from(["constant", "edge", "reflect", "symmetric", "wrap"])),
    ],
}


@pytest.mark.parametrize("name", SHAPES)
@random_cases(50)
@given(data=st.data())
def test_shapes_and_order(name, data):
    host, ours = data.draw(pairs(max_dims=3).filter(lambda pair: name not in SCALARS_LEFT_OUT or pair[0].ndim > 0))
    assume(host.dtype.kind not in KINDS_LEFT_OUT.get(name, ""))
    rest = SHAPES[name](data, host)
    check(f"{name}({host!r}, {rest})", getattr(onp, name), getattr(mx.np, name), [host, *rest], [ours, *rest])


@st.composite
def indices(draw, shape):
    """An index expression of integers, slices, Ellipsis, None, lists and masks, not always a valid one."""
    parts = []
    for length in draw(st.permutations(shape))[: draw(st.integers(0, len(shape)))]:
        position = st.integers(-length - (draw(st.integers(0, 20)) == 0), max(length - 1, 0))
        parts.append(
            draw(
                st.one_of(
                    position,
                    st.slices(length),
                    st.lists(position, max_size=3),
                    hnp.arrays("int64", hnp.array_shapes(max_dims=2, max_side=2), elements=position),
                    hnp.arrays("bool", length),
                    st.none(),
                    st.just(Ellipsis),
                )
            )
        )
    return tuple(parts)


@random_cases(600)
@given(data=st.data())
def test_index_expressions_read_and_write(data):
    host, ours = data.draw(pairs(max_dims=3))
    index = data.draw(indices(host.shape))
    # NumPy lets an empty mask pass for an axis of length 1 where the result is empty anyway.
    assume(not any(isinstance(part, onp.ndarray) and part.dtype == bool and part.size == 0 for part in index))
    check(f"{host!r}[{index}]", operator.getitem, operator.getitem, [host, index], [ours, index])

    value = data.draw(st.sampled_from([0, 1, True, 2.0]))
    host, ours = host.copy(), ours.copy()

    def write(array):
        array[index] = value
        return array

    check(f"{host!r}[{index}] = {value}", write, write, [host], [ours])


JOINS = ["concatenate", "stack", "vstack", "hstack", "dstack", "column_stack"]


@pytest.mark.parametrize("name", JOINS)
@random_cases(40)
@given(data=st.data())
def test_joins(name, data):
    first = data.draw(pairs(max_dims=3))
    second = data.draw(st.one_of(pairs(shape=first[0].shape), pairs(max_dims=3)))
    options = {"axis": data.draw(st.integers(-2, 3))} if name in ("concatenate", "stack") else {}
    both = [[first[side], second[side]] for side in (0, 1)]
    check(f"{name}({both[0]!r}, {options})", getattr(onp, name), getattr(mx.np, name), both[:1], both[1:], **options)


PRODUCTS = ["dot", "matmul", "inner", "outer", "kron", "vecdot", "tensordot"]


@pytest.mark.parametrize("name", PRODUCTS)
@random_cases(50)
@given(data=st.data())
def test_products(name, data):
    dtypes = ["bool", "int8", "int64", "uint8", "float32", "float64", "complex64", "complex128"]
    sides = st.integers(0, 3)
    shapes = [data.draw(st.lists(sides, min_size=0, max_size=3)) for _ in range(2)]
    if data.draw(st.booleans()) and shapes[0] and shapes[1]:
        shapes[1][max(len(shapes[1]) - 2, 0)] = shapes[0][-1]
    hosts = [data.draw(pairs(dtypes, tuple(shape)))[0] for shape in shapes]
    hosts = [onp.nan_to_num(host, nan=1, posinf=2, neginf=3) for host in hosts]
    ours = [mx.np.array(host, dtype=host.dtype) for host in hosts]
    options = {"axes": data.draw(st.integers(0, 2))} if name == "tensordot" else {}
    check(f"{name}({hosts!r}, {options})", getattr(onp, name), getattr(mx.np, name), hosts, ours, **options)
