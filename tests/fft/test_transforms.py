"""Fourier transforms against `numpy.fft` in float64, along any axis, of any length, dtype, layout and norm."""

import functools
import threading

import numpy as np
import pytest

import mxnet as mx

COMPLEX_INPUT = ("fft", "ifft", "irfft", "hfft")
REAL_INPUT = ("rfft", "ihfft")
ONE_AXIS = (*COMPLEX_INPUT, *REAL_INPUT)
LENGTHS = (1, 2, 3, 4, 5, 7, 8, 13, 16, 30, 31, 64, 97, 100, 101, 128, 210, 243, 257, 1009)
NORMS = (None, "backward", "ortho", "forward")


@functools.cache
def rng():
    return np.random.default_rng(7)


def numbers(shape, dtype):
    x = rng().standard_normal(shape)
    return (x + 1j * rng().standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def wide(x):
    """The same values in double precision."""
    return x.astype("complex128" if x.dtype.kind == "c" else "float64")


def ours(x):
    return mx.np.array(x, dtype=x.dtype)


def close(got, want, dtype, n):
    """Equal up to the rounding of log2(n) levels of sums of a few terms, measured against the largest element."""
    got = got.asnumpy()
    assert got.shape == want.shape
    eps = np.finfo(dtype).eps
    # Prime lengths go through convolutions of up to four times the length and back: more levels.
    limit = eps * (4 + 6 * np.log2(max(n, 2)))
    far = np.abs(got - want).max(initial=0) / max(np.abs(want).max(initial=0), np.finfo(dtype).tiny)
    assert far <= limit, f"{far / eps:.1f} eps, allowed {limit / eps:.1f}"


@pytest.mark.parametrize("name", ONE_AXIS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_any_length_matches_numpy(name, dtype):
    if name in REAL_INPUT and dtype.startswith("complex"):
        pytest.skip("takes real numbers")
    for n in LENGTHS:
        x = numbers((3, n), dtype)
        for asked in (n, max(1, n - 3), n + 5):
            got = getattr(mx.np.fft, name)(ours(x), asked)
            want = getattr(np.fft, name)(wide(x), asked)
            assert got.dtype == getattr(np.fft, name)(x, asked).dtype
            close(got, want, dtype, asked)


@pytest.mark.parametrize("name", ONE_AXIS)
@pytest.mark.parametrize("norm", NORMS)
def test_norms_match_numpy(name, norm):
    x = numbers((2, 12), "float64" if name in REAL_INPUT else "complex128")
    for n in (None, 9, 16):
        close(getattr(mx.np.fft, name)(ours(x), n, norm=norm), getattr(np.fft, name)(x, n, norm=norm), "float64", 16)


@pytest.mark.parametrize("name", ONE_AXIS)
def test_any_axis_and_layout_matches_numpy(name):
    base = numbers((6, 10, 14), "float64" if name in REAL_INPUT else "complex128")
    views = {
        "dense": lambda x: x,
        "transposed": lambda x: x.transpose(2, 0, 1),
        "reversed": lambda x: x[::-1, :, ::-1],
        "every second": lambda x: x[::2, 1::2, ::3],
        "one line": lambda x: x[:1, 2:3],
    }
    for what, view in views.items():
        x = view(base)
        for axis in (0, 1, 2, -1, -3):
            n = x.shape[axis]
            if n < 2:
                n = 4
            got = getattr(mx.np.fft, name)(view(ours(base)), n, axis)
            try:
                close(got, getattr(np.fft, name)(x, n, axis), "float64", n)
            except AssertionError as error:
                error.add_note(f"{what}, axis {axis}")
                raise
    repeated = np.broadcast_to(base[0, 0], (5, 14))
    close(
        getattr(mx.np.fft, name)(mx.np.broadcast_to(ours(base[0, 0]), (5, 14))),
        getattr(np.fft, name)(repeated),
        "float64",
        14,
    )


@pytest.mark.parametrize(
    "shape,axis", [((700, 33), 0), ((3, 40, 50), 1), ((5000, 6), 1), ((8, 4100), 0), ((2, 70000), 1)]
)
def test_many_lines_and_long_ones_match_numpy(shape, axis):
    for dtype in ("float32", "complex64"):
        x = numbers(shape, dtype)
        close(mx.np.fft.fft(ours(x), axis=axis), np.fft.fft(wide(x), axis=axis), dtype, shape[axis])
    half = mx.np.fft.rfft(ours(numbers(shape, "float32")), axis=axis)
    back = mx.np.fft.irfft(half, shape[axis], axis)
    close(back, np.fft.irfft(wide(half.asnumpy()), shape[axis], axis), "float32", shape[axis])


def test_single_precision_stays_single_and_integers_are_the_default_float():
    for given, want in {
        "float16": "complex64",
        "float32": "complex64",
        "float64": "complex128",
        "complex64": "complex64",
        "complex128": "complex128",
        "int8": "complex64",
        "int64": "complex64",
        "bool": "complex64",
    }.items():
        x = mx.np.ones((4,), dtype=given)
        assert mx.np.fft.fft(x).dtype == want
        assert mx.np.fft.fftn(x).dtype == want
    assert mx.np.fft.fft(mx.np.ones((4,)).astype("bfloat16")).dtype == "complex64"
    before = mx.util.set_np_default_dtype(True)
    try:
        assert mx.np.fft.fft(mx.np.ones((4,), dtype="int8")).dtype == "complex128"
        assert mx.np.fft.fftfreq(4).dtype == "float64"
    finally:
        mx.util.set_np_default_dtype(before)


def test_real_results_of_halves_are_halves_as_in_numpy():
    x = numbers((5,), "float16")
    for name in ("irfft", "hfft", "irfftn"):
        got, want = getattr(mx.np.fft, name)(ours(x)), getattr(np.fft, name)(x)
        assert got.dtype == want.dtype == "float16"
        # One unit in the last place of the largest result.
        np.testing.assert_allclose(got.asnumpy(), want, rtol=0, atol=2.0**-10 * abs(want).max())


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2"])
def test_several_axes_match_numpy(name):
    real = name.startswith("rfft")
    x = numbers((4, 5, 6), "float64" if real else "complex128")
    calls = [
        {},
        {"norm": "ortho"},
        {"axes": (0, 1)},
        {"axes": (1, 0), "norm": "forward"},
        {"axes": (-1,)},
        {"axes": (0, 2, 1)},
        {"axes": (1, 1)},
        {"s": (3, 8), "axes": (0, 2)},
        {"s": (7, -1), "axes": (2, 0)},
        {"s": (2, 3, 4), "axes": (0, 1, 2)},
    ]
    for call in calls:
        got = getattr(mx.np.fft, name)(ours(x), **call)
        try:
            close(got, getattr(np.fft, name)(x, **call), "float64", 64)
        except AssertionError as error:
            error.add_note(str(call))
            raise
    with pytest.warns(DeprecationWarning, match="`axes` should not be `None` if `s` is not `None`"):
        last = getattr(mx.np.fft, name)(ours(x), s=(3, 4), axes=None)
    close(last, getattr(np.fft, name)(x, s=(3, 4), axes=(-2, -1)), "float64", 64)
    with pytest.warns(DeprecationWarning, match="`None` values"):
        last = getattr(mx.np.fft, name)(ours(x), s=(3, None), axes=(0, 1))
    close(last, getattr(np.fft, name)(x, s=(3, 5), axes=(0, 1)), "float64", 64)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_three_numbers_have_numpys_bits(dtype):
    x = numbers((50, 3), dtype)
    for name in ["fft", "ifft"] + (["rfft", "ihfft"] if dtype == "float64" else []):
        got, want = getattr(mx.np.fft, name)(ours(x)), getattr(np.fft, name)(x)
        np.testing.assert_array_equal(got.asnumpy(), want, err_msg=name)


def test_without_axes_complex_transforms_return_the_array():
    x = numbers((2, 3), "float32")
    got = mx.np.fft.fftn(ours(x), axes=())
    assert got.dtype == np.fft.fftn(x, axes=()).dtype == "float32"
    np.testing.assert_array_equal(got.asnumpy(), x)
    for name in ("rfftn", "irfftn"):
        with pytest.raises(IndexError, match="at least 1 axis"):
            getattr(mx.np.fft, name)(ours(x), axes=())


def test_empty_batches_are_empty_and_empty_lines_are_errors():
    for name in ONE_AXIS:
        x = np.zeros((0, 4), "float32")
        assert getattr(mx.np.fft, name)(ours(x)).shape == getattr(np.fft, name)(x).shape
        with pytest.raises(ValueError, match=r"data points \((0|-2)\)"):
            getattr(mx.np.fft, name)(mx.np.zeros((3, 0)))
        assert getattr(mx.np.fft, name)(mx.np.zeros((3, 0)), 4).asnumpy().any() == np.False_
        with pytest.raises(ValueError, match=r"\(-1\) specified"):
            getattr(mx.np.fft, name)(mx.np.zeros((3, 4)), -1)
    with pytest.raises(ValueError, match=r"\(0\) specified"):
        mx.np.fft.irfft(mx.np.ones((1,)))
    with pytest.raises(ValueError, match=r"\(0\) specified"):
        mx.np.fft.fftn(mx.np.zeros((3, 0)))


def test_errors_name_the_axis_the_norm_and_the_dtype():
    x = mx.np.ones((3, 4))
    with pytest.raises(np.exceptions.AxisError, match="axis 2 is out of bounds for array of dimension 2"):
        mx.np.fft.fft(x, axis=2)
    with pytest.raises(np.exceptions.AxisError, match="dimension 0"):
        mx.np.fft.fft(mx.np.array(1.0))
    with pytest.raises(np.exceptions.AxisError, match="axis -2"):
        mx.np.fft.fft2(mx.np.ones((3,)))
    with pytest.raises(ValueError, match="backward, ortho, forward"):
        mx.np.fft.fft(x, norm="unitary")
    with pytest.raises(ValueError, match="different lengths: 2 and 1"):
        mx.np.fft.fftn(x, s=(2, 2), axes=(0,))
    for name in ("rfft", "ihfft", "rfftn"):
        with pytest.raises(TypeError, match="must be real, found complex64"):
            getattr(mx.np.fft, name)(x + 0j)


def test_out_is_written_and_checked():
    x = ours(numbers((3, 4), "float32"))
    want = mx.np.fft.fft(x).asnumpy()
    for dtype in ("complex64", "complex128"):
        out = mx.np.zeros((3, 4), dtype=dtype)
        assert mx.np.fft.fft(x, out=out) is out
        np.testing.assert_array_equal(out.asnumpy(), want)
    out = mx.np.zeros((4, 3), dtype="complex64").T
    mx.np.fft.fft(x, None, -1, None, out)
    np.testing.assert_array_equal(out.asnumpy(), want)
    itself = x + 0j
    mx.np.fft.fft(itself, axis=0, out=itself)
    np.testing.assert_array_equal(itself.asnumpy(), mx.np.fft.fft(x, axis=0).asnumpy())
    with pytest.raises(ValueError, match=r"\(4, 3\)"):
        mx.np.fft.fft(x, out=mx.np.zeros((4, 3), dtype="complex64"))
    with pytest.raises(TypeError, match="float32"):
        mx.np.fft.fft(x, out=mx.np.zeros((3, 4)))


def test_nan_stays_in_its_line():
    for name, dtype in (("fft", "complex64"), ("rfft", "float32"), ("irfft", "complex64")):
        x = numbers((6, 9), dtype)
        x[2, 3] = np.nan
        for axis in (1, 0):
            bad = np.isnan(getattr(mx.np.fft, name)(ours(x if axis else x.T.copy()), axis=axis).asnumpy())
            lines = bad if axis else bad.T
            assert lines[2].all() and not np.delete(lines, 2, 0).any()


def test_imaginary_parts_that_cannot_be_are_not_looked_at():
    x = numbers((5,), "complex128")
    y = x.copy()
    y.imag[[0, -1]] = np.inf
    np.testing.assert_array_equal(mx.np.fft.irfft(ours(x)).asnumpy(), mx.np.fft.irfft(ours(y)).asnumpy())


def test_frequencies_match_numpy():
    for n in (1, 2, 5, 8, 101):
        for d in (1.0, 0.1, 3):
            for name in ("fftfreq", "rfftfreq"):
                got, want = getattr(mx.np.fft, name)(n, d), getattr(np.fft, name)(n, d)
                assert got.dtype == "float32"
                np.testing.assert_allclose(got.asnumpy(), want, rtol=2e-7)
    assert mx.np.fft.fftfreq(4, device=mx.cpu()).device == mx.cpu()
    for name in ("fftfreq", "rfftfreq"):
        for arguments in ((0,), (3, 0), (3, 0.0)):
            with pytest.raises(ZeroDivisionError):
                getattr(np.fft, name)(*arguments)
            with pytest.raises(ZeroDivisionError, match="must not be 0"):
                getattr(mx.np.fft, name)(*arguments)
    with pytest.raises(ValueError, match="at least 1, found -1"):
        mx.np.fft.fftfreq(-1)


@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
def test_frequencies_have_the_dtype_that_is_asked_for(name):
    ours, theirs = getattr(mx.np.fft, name), getattr(np.fft, name)
    for dtype in ("float16", "float32", "float64"):
        got = ours(5, 0.1, dtype=dtype)
        assert got.dtype == dtype
        # One rounding of the double-precision result.
        np.testing.assert_array_equal(got.asnumpy(), theirs(5, 0.1).astype(dtype))
    assert ours(4, dtype="bfloat16").dtype == mx.np.bfloat16
    for dtype in ("int64", "complex64", "bool"):
        with pytest.raises(TypeError, match=f"`dtype` must be a real floating-point type, found {dtype}"):
            ours(4, dtype=dtype)


def test_shifts_match_numpy_and_undo_each_other():
    for shape in ((5,), (4, 5), (0, 3), (3, 4, 5)):
        x = numbers(shape, "float32")
        for axes in (None, 0, -1, *([(0, 1), (1, 0)] if len(shape) > 1 else [])):
            for name in ("fftshift", "ifftshift"):
                want = getattr(np.fft, name)(x, axes)
                np.testing.assert_array_equal(getattr(mx.np.fft, name)(ours(x), axes).asnumpy(), want)
            there = mx.np.fft.ifftshift(mx.np.fft.fftshift(ours(x), axes), axes)
            np.testing.assert_array_equal(there.asnumpy(), x)
    with pytest.raises(np.exceptions.AxisError):
        mx.np.fft.fftshift(mx.np.ones((3,)), axes=1)


def test_threads_that_plan_the_same_lengths_agree():
    x = numbers((4, 360), "complex64")
    results = {}

    def work(i):
        for n in range(300, 360):
            results[i, n] = mx.np.fft.fft(ours(x), n).asnumpy()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for n in range(300, 360):
        assert all(np.array_equal(results[0, n], results[i, n]) for i in range(4))
