"""Cases beside the rule: views, index expressions, masks without elements, zero divisors, promotion."""

import numpy as np
import pytest

import onnx_oracle
from mxnet import error, npx
from mxnet import np as mnp


def data(*shape):
    return mnp.array(np.random.default_rng(sum(shape)).normal(size=shape).astype("float32"))


def whole(*numbers):
    return mnp.array(numbers, dtype="int32")


def check(function, *arrays, tmp_path, exact=False):
    net, wanted = onnx_oracle.traced(function, arrays)
    model = onnx_oracle.export(net, tmp_path / "x.onnx")
    found, who = onnx_oracle.run(tmp_path / "x.onnx", arrays)
    assert who == "onnxruntime"
    for y, want in zip(found, wanted, strict=True):
        assert (y.shape, str(y.dtype)) == (want.shape, str(want.dtype))
        if exact:
            np.testing.assert_array_equal(y, want.asnumpy())
        else:
            np.testing.assert_allclose(y, want.asnumpy(), 1e-6, 1e-6)
    return [node.op_type for node in model.graph.node]


VIEWS = {
    "steps of an odd axis": lambda x: x[:, :, ::2],
    "steps of merged axes": lambda x: x.reshape(6, 5)[::4],
    "steps of split axes": lambda x: x.reshape(30)[::7],
    "backwards": lambda x: x[::-1, :, ::-2],
    "transposed part": lambda x: x[:, 1:, 2:4].transpose(2, 0, 1),
    "one element": lambda x: x[1, 2, 3],
    "row": lambda x: x[1, 2],
    "new axes": lambda x: x[:, None, 1, ..., None],
    "merged": lambda x: x[:, :2].reshape(4, 5),
    "merged transpose": lambda x: x.transpose(1, 0, 2).reshape(3, 10),
    "broadcast": lambda x: mnp.broadcast_to(x[:, :1], (4, 2, 3, 5)),
    "diagonal": lambda x: x.reshape(5, 6).diagonal(),
    "diagonal of a part": lambda x: mnp.diagonal(x[:, :2], axis1=0, axis2=1),
    "windows": lambda x: mnp.lib.stride_tricks.sliding_window_view(x, 3, axis=2),
    "no elements": lambda x: x[:, 3:],
    "parts": lambda x: mnp.concatenate(mnp.split(x.reshape(6, 5), [1, 3], axis=0)[1:]),
    "Fortran order": lambda x: x.reshape((5, 6), order="F"),
}


@pytest.mark.parametrize("name", VIEWS)
def test_view(name, tmp_path):
    # The addition reads the view; a view as the result would be copied by our engine first.
    check(lambda x: (VIEWS[name](x) + 1, VIEWS[name](x)), data(2, 3, 5), tmp_path=tmp_path, exact=True)


def test_views_become_slices_without_positions(tmp_path):
    operators = check(lambda x: x[:, 1:, ::2].transpose(0, 2, 1) + 1, data(2, 3, 5), tmp_path=tmp_path)
    assert operators == ["Slice", "Transpose", "Add"]
    assert check(lambda x: x.reshape(6, 5) * 2, data(2, 3, 5), tmp_path=tmp_path) == ["Reshape", "Mul"]


INDICES = {
    "rows": lambda x, i: x[i],
    "middle axis": lambda x, i: x[:, i, 1:],
    "two together": lambda x, i: x[i, i],
    "two apart": lambda x, i: x[i, :, i],
    "integer apart": lambda x, i: x[0, :, i],
    "integer together": lambda x, i: x[i, -1],
    "new axes": lambda x, i: x[None, i, ..., None],
    "new axis between": lambda x, i: x[i, None, i],
    "grid": lambda x, i: x[i[:, None], i[None], ::2],
    "backwards": lambda x, i: x[i, ::-1],
    "pairs": lambda x, i: npx.gather_nd(x, mnp.stack([i, i])),
    "along": lambda x, i: mnp.take_along_axis(x, i.reshape(1, 1, 2), axis=2),
    "clipped": lambda x, i: mnp.take(x, i + 2, axis=1, mode="clip"),
    "wrapped": lambda x, i: mnp.take(x, i + 2, axis=1, mode="wrap"),
    "picked": lambda x, i: npx.pick(x[:, :, 0], i),
}


@pytest.mark.parametrize("name", INDICES)
def test_index_arrays(name, tmp_path):
    check(INDICES[name], data(2, 3, 5), whole(1, -1), tmp_path=tmp_path, exact=True)


WRITES = {
    "scalar at rows": lambda y, i: y.__setitem__(i, 7),
    "array at an axis": lambda y, i: y.__setitem__((slice(None), i), y[:, :2] * 2),
    "apart": lambda y, i: y.__setitem__((i, slice(None), i), 3),
    "integer": lambda y, i: y.__setitem__((0, i), 7),
    "row": lambda y, i: y.__setitem__(1, 4),
    "block": lambda y, i: y.__setitem__((slice(None), slice(1, None), slice(0, 2)), 9),
    "every second": lambda y, i: y.__setitem__((slice(None), slice(None), slice(None, None, 2)), 1),
    "mask": lambda y, i: y.__setitem__(y > 0, 0),
    "all of it backwards": lambda y, i: y[::-1, :, ::-1].__setitem__(..., y * 2),
    "every second backwards": lambda y, i: y[:, ::-2].__setitem__(..., 5),
}


@pytest.mark.parametrize("name", WRITES)
def test_writes_to_results(name, tmp_path):
    def written(x, i):
        y = x * 1
        WRITES[name](y, i)
        return y

    check(written, data(2, 3, 5), whole(1, 0), tmp_path=tmp_path, exact=True)


def test_repeated_positions_accumulate(tmp_path):
    def added(x, i):
        return npx.index_add(x, i.reshape(1, 3), mnp.ones((3, 3, 5)))

    check(added, data(2, 3, 5), whole(1, 1, 0), tmp_path=tmp_path)


def test_attention_of_queries_that_see_nothing(tmp_path):
    mask = mnp.array([[True, False, True], [False, False, False]])

    def attended(q, k, v):
        found = npx.scaled_dot_product_attention(q, k, v, mask=mask)
        return found, npx.scaled_dot_product_attention(q, k, v, is_causal=True)

    check(attended, data(2, 2, 4), data(2, 3, 4), data(2, 3, 5), tmp_path=tmp_path)


def test_attention_with_a_bias(tmp_path):
    check(
        lambda q, k, v, bias: npx.scaled_dot_product_attention(q, k, v, mask=bias),
        *(data(2, 2, 4), data(2, 3, 4), data(2, 3, 5), data(2, 3)),
        tmp_path=tmp_path,
    )


def test_softmax_of_rows_of_given_lengths(tmp_path):
    def normal(x, n):
        return npx.softmax(x, n, use_length=True), npx.log_softmax(x, axis=-1, temperature=2.0)

    check(normal, data(3, 4), whole(4, 2, 0), tmp_path=tmp_path)


def test_division_of_integers_by_zero_and_negative_numbers(tmp_path):
    def divided(x, y):
        return x // y, x % y, mnp.fmod(x, y), x / y

    check(divided, whole(7, -7, 7, -7, 5, 0), whole(2, 2, -2, -2, 0, 0), tmp_path=tmp_path)


def test_numbers_and_arrays_of_other_dtypes_are_promoted(tmp_path):
    def mixed(x, i):
        return x + i, i * 2.5, i > 1.5, mnp.where(x > 0, x, i), i / 2, x.astype("float64") + i, mnp.maximum(i, x)

    check(mixed, data(3), whole(1, 2, 3), tmp_path=tmp_path)


def test_promotion_of_numpy(tmp_path):
    npx.set_np(dtype=True)
    try:
        check(lambda x, i: (x + i, i * 2.5, i > 1.5, i / 2), data(3), whole(1, 2, 3), tmp_path=tmp_path)
    finally:
        npx.set_np()


def test_largest_windows_without_slices_are_refused(tmp_path):
    def windows(x):
        return mnp.lib.stride_tricks.sliding_window_view(x, 2048) + 1

    net, _ = onnx_oracle.traced(windows, [data(6000)])
    with pytest.raises(error.UnsupportedError, match=r"no ONNX operators give its view of shape \(3953, 2048\)"):
        onnx_oracle.export(net, tmp_path / "x.onnx")
