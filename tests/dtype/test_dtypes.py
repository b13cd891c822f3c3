"""Data types: limits, kinds, casts and promotion in both modes, and what the namespace says about itself."""

import itertools

import numpy
import pytest

import mxnet as mx
from both import both, outcome
from mxnet.util import np_default_dtype

NAMES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]
CASTINGS = ["no", "equiv", "safe", "same_kind", "unsafe"]


def test_casts_are_numpys():
    for one, other in itertools.product(NAMES, NAMES):
        for casting in CASTINGS:
            assert mx.np.can_cast(one, other, casting) == numpy.can_cast(one, other, casting), (one, other, casting)


def test_casts_of_arrays_and_numbers():
    x = mx.np.zeros(2, "int32")
    assert mx.np.can_cast(x, "int64") and not mx.np.can_cast(x, "int16") and mx.np.can_cast(numpy.int8(3), "int16")
    for number in (1, 1.5, True, 2j):
        with pytest.raises(TypeError, match="Python numbers have no dtype"):
            mx.np.can_cast(number, "int8")
    with pytest.raises(ValueError, match="other"):
        mx.np.can_cast("int8", "int16", "other")
    with pytest.raises(TypeError, match="nothing"):
        mx.np.can_cast("int8", "nothing")


def test_casts_of_bfloat16():
    assert mx.np.can_cast(mx.np.bfloat16, "float32") and mx.np.can_cast("int8", mx.np.bfloat16)
    assert not mx.np.can_cast("float32", mx.np.bfloat16) and not mx.np.can_cast(mx.np.bfloat16, "float16")
    assert mx.np.can_cast("float64", mx.np.bfloat16, "same_kind")


def test_promotion_is_numpys_in_its_mode():
    with np_default_dtype(True):
        for one, other in itertools.product(NAMES, NAMES):
            assert mx.np.promote_types(one, other) == numpy.promote_types(one, other), (one, other)
            assert mx.np.result_type(one, other) == numpy.result_type(one, other), (one, other)
        for name, number in itertools.product(NAMES, (True, 3, 1.5, 2j)):
            assert mx.np.result_type(name, number) == numpy.result_type(name, number), (name, number)
            x = mx.np.zeros(2, name)
            assert mx.np.result_type(x, number) == numpy.result_type(x.asnumpy(), number)
            assert mx.np.result_type(number, name, x) == (x * number).dtype or name == "bool"


def test_promotion_keeps_floats_by_default():
    assert mx.np.promote_types("int64", "float32") == "float32" == mx.np.result_type("int32", 1.5)
    assert mx.np.result_type(1.5) == "float32" and mx.np.result_type(1) == "int64"
    assert mx.np.result_type(2j) == "complex64" and mx.np.result_type(True) == "bool"
    assert mx.np.result_type("float16", 3) == "float16" == mx.np.result_type("float16", 1.5)
    assert mx.np.result_type([1.0, 2.0], "int8") == "float32"
    assert str(mx.np.promote_types(mx.np.bfloat16, "int8")) == "bfloat16"
    assert mx.np.promote_types(mx.np.bfloat16, "float16") == "float32"
    with pytest.raises(ValueError, match="at least one"):
        mx.np.result_type()


@pytest.mark.parametrize(
    "expression",
    [
        "np.min_scalar_type(300)",
        "np.min_scalar_type(-1)",
        "np.min_scalar_type(1e40)",
        "np.min_scalar_type(3.5)",
        "np.min_scalar_type(True)",
        "np.min_scalar_type(1j)",
        "np.min_scalar_type(x)",
        "np.min_scalar_type(x[0])",
        "np.common_type(x)",
        "np.common_type(x, x.astype('float32'))",
        "np.common_type(x.astype('float32'))",
        "np.common_type(x.astype('float16'), x.astype('complex64'))",
        "np.common_type(x > 0)",
        "np.isdtype(np.float32, 'real floating')",
        "np.isdtype(np.int8, ('bool', 'integral'))",
        "np.isdtype(np.int8, ())",
        "np.isdtype(np.uint8, 'unsigned integer'), np.isdtype(np.uint8, 'signed integer')",
        "np.isdtype(np.complex64, 'complex floating'), np.isdtype(np.complex64, 'numeric')",
        "np.isdtype(np.bool, 'numeric'), np.isdtype(np.bool, 'bool')",
        "np.isdtype(np.float32, np.float64), np.isdtype(np.float32, np.float32)",
        "np.isdtype(np.dtype('float32'), 'other')",
        "np.issubdtype(np.float32, np.floating), np.issubdtype(np.float32, np.integer)",
        "np.issubdtype('int8', np.signedinteger), np.issubdtype('int8', np.unsignedinteger)",
        "np.issubdtype(np.complex64, np.inexact), np.issubdtype(np.complex64, np.complexfloating)",
        "np.issubdtype(float, 'float64'), np.issubdtype(np.bool, np.number), np.issubdtype(np.bool, np.generic)",
    ],
)
def test_predicates_of_dtypes_agree_with_numpy(expression):
    both(expression, x=numpy.arange(3))


def test_kinds_of_bfloat16():
    b = mx.np.bfloat16
    assert mx.np.isdtype(b, "real floating") and mx.np.isdtype(b, b) and not mx.np.isdtype(b, "integral")
    assert not mx.np.isdtype("float32", b)
    x = mx.np.zeros(2, dtype=b)
    for dtype in (b, x.dtype):
        assert mx.np.issubdtype(dtype, mx.np.floating) and mx.np.issubdtype(dtype, mx.np.number)
        assert not mx.np.issubdtype(dtype, mx.np.integer) and not mx.np.issubdtype(dtype, mx.np.float16)
        assert mx.np.issubdtype(dtype, b) and not mx.np.issubdtype("float32", b)
    assert str(mx.np.common_type(x)).endswith("bfloat16'>") or str(mx.np.common_type(x)) == "bfloat16"
    assert str(mx.np.min_scalar_type(x)) == "bfloat16"


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_limits_of_floats_are_numpys(name):
    ours, theirs = mx.np.finfo(name), numpy.finfo(name)
    for field in [
        "bits",
        "eps",
        "epsneg",
        "max",
        "min",
        "smallest_normal",
        "tiny",
        "smallest_subnormal",
        "precision",
        "resolution",
        "nmant",
        "nexp",
        "iexp",
        "machep",
        "negep",
        "maxexp",
        "minexp",
        "dtype",
    ]:
        found, expected = getattr(ours, field), getattr(theirs, field)
        if field == "resolution":
            assert numpy.dtype(name).type(found) == expected
        else:
            assert found == expected, field
    assert type(ours.eps) is float and mx.np.finfo(mx.np.zeros(1, name)) == ours
    if name != "float16":  # NumPy's own is written with other digits than its numbers
        assert repr(ours) == repr(theirs)
    assert mx.np.finfo(numpy.dtype(f"complex{2 * ours.bits}") if name != "float16" else name) == ours


def test_limits_of_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    ours, theirs = mx.np.finfo(mx.np.bfloat16), ml_dtypes.finfo("bfloat16")
    for field in [
        "bits",
        "eps",
        "epsneg",
        "max",
        "min",
        "smallest_normal",
        "smallest_subnormal",
        "precision",
        "nmant",
        "nexp",
        "machep",
        "negep",
    ]:
        assert getattr(ours, field) == float(getattr(theirs, field)), field


@pytest.mark.parametrize("name", NAMES[1:9])
def test_limits_of_integers_are_numpys(name):
    ours, theirs = mx.np.iinfo(name), numpy.iinfo(name)
    for field in ("bits", "max", "min", "kind", "key", "dtype"):
        assert getattr(ours, field) == getattr(theirs, field), field
    assert mx.np.iinfo(mx.np.zeros(1, name)) == ours and type(ours.max) is int
    assert repr(ours).startswith(f"iinfo(min={ours.min}, max={ours.max}")


def test_limits_of_the_wrong_kind_are_refused():
    with pytest.raises(ValueError, match="int32"):
        mx.np.finfo("int32")
    with pytest.raises(ValueError, match="float32"):
        mx.np.iinfo("float32")


def test_classes_of_dtypes_and_errors_are_numpys():
    for name in [
        "generic",
        "number",
        "integer",
        "signedinteger",
        "unsignedinteger",
        "inexact",
        "floating",
        "complexfloating",
    ]:
        assert getattr(mx.np, name) is getattr(numpy, name)
    with pytest.raises(mx.np.exceptions.AxisError):
        mx.np.sum(mx.np.zeros(2), axis=3)
    assert mx.np.exceptions.TooHardError is numpy.exceptions.TooHardError
    assert mx.np.dtype("float32") in mx.np.floating_dtypes and mx.np.dtype("bool") in mx.np.boolean_dtypes
    assert mx.np.dtype("uint8") in mx.np.integer_dtypes and len(mx.np.numeric_dtypes) == 11


def test_namespace_describes_itself():
    info = mx.np.__array_namespace_info__()
    assert info.capabilities() == {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}
    assert info.default_device() == mx.cpu(0) and mx.cpu(0) in info.devices()
    assert info.default_dtypes()["real floating"] == "float32"
    with np_default_dtype(True):
        assert info.default_dtypes() == numpy.__array_namespace_info__().default_dtypes()
    theirs = numpy.__array_namespace_info__()
    for kind in (None, "bool", "integral", "real floating", "numeric", ("bool", "complex floating")):
        assert info.dtypes(kind=kind) == theirs.dtypes(kind=kind)
    with pytest.raises(ValueError, match="no kind 'other'"):
        info.dtypes(kind="other")
    with pytest.raises(ValueError, match="gpu"):
        info.dtypes(device=mx.gpu(7))
    assert mx.np.__array_api_version__ == "2025.12" and mx.np.__version__ == mx.__version__


def test_what_the_standard_of_2025_adds_is_there():
    x = mx.np.arange(24).reshape(2, 3, 4)
    assert x.__array_namespace__(api_version="2025.12") is mx.np
    with pytest.raises(ValueError, match=r"2026\.12"):
        x.__array_namespace__(api_version="2026.12")
    assert mx.np.expand_dims(x, axis=(0, -1)).shape == (1, 2, 3, 4, 1)
    assert mx.np.permute_dims(x, (-1, 0, 1)).shape == (4, 2, 3)
    assert mx.np.searchsorted(mx.np.array([1.0, 2.0, 3.0]), 2.5).item() == 2
    assert mx.np.broadcast_shapes((2, 1), (3,)) == (2, 3)
    assert mx.np.broadcast_shapes() == ()
    assert mx.np.isin(x[0, 0], mx.np.array([1, 3])).tolist() == [False, True, False, True]
    values, vectors = mx.np.linalg.eig(mx.np.array([[2.0, 0.0], [0.0, 3.0]]))
    assert (
        sorted(values.real.tolist())
        == sorted(mx.np.linalg.eigvals(mx.np.array([[2.0, 0.0], [0.0, 3.0]])).real.tolist())
        == [2, 3]
    )
    assert vectors.shape == (2, 2)


def test_text_of_arrays_follows_the_options():
    x = mx.np.array([1.23456, 1e-9, 1000.0])
    n = x.asnumpy()
    assert mx.np.array2string(x, precision=2, separator=",") == numpy.array2string(n, precision=2, separator=",")
    assert mx.np.array_str(x, 20, 2, True) == numpy.array_str(n, 20, 2, True)
    assert mx.np.array_repr(x, precision=3, suppress_small=True).startswith("array([   1.235,    0.   , 1000.   ]")
    with mx.np.printoptions(precision=1, suppress=True) as options:
        assert options["precision"] == 1 and str(x) == "[   1.2    0.  1000. ]"
        assert mx.np.get_printoptions()["precision"] == 1
    before = mx.np.get_printoptions()
    mx.np.set_printoptions(threshold=2, edgeitems=1)
    try:
        assert str(mx.np.arange(5)) == "[0 ... 4]"
    finally:
        mx.np.set_printoptions(**before)
    assert mx.np.format_float_positional(1e-3) == "0.001" and mx.np.base_repr(5) == mx.np.binary_repr(5) == "101"


def test_errors_of_questions_are_numpys():
    for expression in ("np.isdtype(3, 'bool')", "np.promote_types('int8', 'nothing')"):
        assert isinstance(outcome(expression, mx.np, {})[1], type(outcome(expression, numpy, {})[1]))


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "int32"])
def test_numpys_float64_is_a_python_float_beside_arrays(name):
    x = mx.np.array([1, 2, 3]).astype(name)
    for number, same in ((numpy.sqrt(2.0), 2.0**0.5), (numpy.complex128(1 + 2j), 1 + 2j)):
        for operation in (
            lambda x, n: x * n,
            lambda x, n: n * x,
            lambda x, n: n - x,
            lambda x, n: x / n,
            lambda x, n: x**n,
            lambda x, n: x[0] + n,
            lambda x, n: mx.np.where(x > 1, x, n),
            lambda x, n: mx.np.add(n, x),
            lambda x, n: mx.jit(lambda x: x * n)(x),
        ):
            found, wanted = operation(x, number), operation(x, same)
            assert found.dtype == wanted.dtype
            assert (found == wanted).all()
        assert mx.np.result_type(x, number) == mx.np.result_type(x, same)


def test_numpys_float64_keeps_its_dtype_under_numpys_rules_and_in_arrays():
    number = numpy.float64(2)
    assert mx.np.array(number).dtype == mx.np.array([number]).dtype == "float64"
    assert (mx.np.ones(2) * numpy.array([2.0])).dtype == "float64"
    with np_default_dtype(True):
        x = mx.np.ones(2, "float32")
        assert (x * number).dtype == mx.np.result_type(x, number) == "float64"
