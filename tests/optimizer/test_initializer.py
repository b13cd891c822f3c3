"""Initializers: values, statistics, names."""

import numpy as onp
import pytest

import mxnet as mx
from mxnet import initializer
from mxnet.test_utils import assert_almost_equal


def filled(init, *shape, name="weight"):
    mx.random.seed(7)
    array = mx.np.zeros(shape)
    initializer.create(init)(initializer.InitDesc(name), array)
    return array.asnumpy()


def test_suffix_decides_neutral_values():
    for name, value in (("bias", 0), ("gamma", 1), ("beta", 0), ("running_mean", 0), ("running_var", 1)):
        assert (filled(initializer.Normal(1.0), 5, name=name) == value).all()


@pytest.mark.parametrize(
    ("init", "std"),
    [
        (initializer.Uniform(0.3), 0.3 / 3**0.5),
        (initializer.Normal(0.3), 0.3),
        (initializer.Xavier(), (2 / (200 + 300)) ** 0.5),
        (initializer.Xavier("gaussian", "in", 2), (2 / 300) ** 0.5),
        (initializer.Xavier("gaussian", "out", 2), (2 / 200) ** 0.5),
        (initializer.MSRAPrelu("in", 0.5), (2 / (1 + 0.25) / 300) ** 0.5),
    ],
)
def test_spread(init, std):
    values = filled(init, 200, 300).astype("float64")
    # Six standard errors of the mean and of the standard deviation of 60000 numbers.
    assert abs(values.mean()) < 6 * std / 60000**0.5
    assert abs(values.std() / std - 1) < 6 / (2 * 60000) ** 0.5


def test_xavier_counts_kernel_positions():
    values = filled(initializer.Xavier("uniform", "in", 3), 8, 4, 3, 3)
    assert abs(values).max() <= (3 / 36) ** 0.5
    assert abs(values).max() > 0.9 * (3 / 36) ** 0.5


def test_xavier_needs_two_axes():
    with pytest.raises(ValueError, match=r"at least 2 axes, but 'weight' has shape \(3,\)"):
        filled(initializer.Xavier(), 3)


@pytest.mark.parametrize("shape", [(4, 6), (6, 4), (4, 2, 3)])
@pytest.mark.parametrize("kind", ["uniform", "normal"])
def test_orthogonal_rows_or_columns(shape, kind):
    matrix = filled(initializer.Orthogonal(2.0, kind), *shape).reshape(shape[0], -1)
    gram = matrix @ matrix.T if matrix.shape[0] <= matrix.shape[1] else matrix.T @ matrix
    assert_almost_equal(gram, 4 * onp.eye(len(gram)), rtol=0, atol=1e-5)


def test_bilinear_is_a_tent():
    kernel = filled(initializer.Bilinear(), 1, 1, 4, 4)[0, 0]
    tent = onp.array([0.25, 0.75, 0.75, 0.25])
    assert_almost_equal(kernel, onp.outer(tent, tent), rtol=1e-6, atol=0)


def test_lstm_bias_opens_the_forget_gate():
    assert filled(initializer.LSTMBias(2.0), 8, name="h2h_bias").tolist() == [0, 0, 2, 2, 0, 0, 0, 0]


def test_mixed_takes_the_first_match():
    init = initializer.Mixed([".*special", ".*"], [initializer.One(), initializer.Zero()])
    assert filled(init, 2, name="very_special").tolist() == [1, 1]
    assert filled(init, 2, name="plain").tolist() == [0, 0]
    with pytest.raises(ValueError, match="no pattern matches 'x'"):
        filled(initializer.Mixed(["a"], [initializer.One()]), 2, name="x")


def test_load_copies_and_falls_back():
    init = initializer.Load({"arg:a": mx.np.array([1.0, 2.0])}, initializer.One())
    assert filled(init, 2, name="a").tolist() == [1, 2]
    assert filled(init, 2, name="b").tolist() == [1, 1]
    with pytest.raises(ValueError, match=r"shape \(2,\), but shape \(3,\)"):
        filled(init, 3, name="a")


def test_names_and_text_make_initializers():
    assert initializer.create("xavier") == initializer.Xavier()
    assert initializer.create("zeros") == initializer.Zero()
    init = initializer.Normal(0.5)
    assert initializer.create(init.dumps()) == init
    assert initializer.create({"initializer": "Gaussian", "sigma": 0.5}) == init
    assert initializer.Normal(0.5) != initializer.Normal(0.6)
    with pytest.raises(ValueError, match="'xaver'"):
        initializer.create("xaver")


def test_same_seed_same_values():
    assert (filled(initializer.Normal(1.0), 10) == filled(initializer.Normal(1.0), 10)).all()
