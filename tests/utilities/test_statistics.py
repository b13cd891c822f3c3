"""Checks of samples: probabilities against SciPy, right and wrong distributions; small helpers; progress."""

import logging
from types import SimpleNamespace

import numpy as onp
import pytest
import scipy.stats

import mxnet as mx
from mxnet import test_utils
from mxnet.gluon import metric

N = 4000


def drawing(seed, **kwargs):
    generator = onp.random.default_rng(seed)
    return lambda n: generator.normal(size=n, **kwargs)


@pytest.mark.parametrize("number", [2, 3, 8, 21])
def test_the_probability_is_that_of_scipy(number):
    buckets, probs = test_utils.gen_buckets_probs_with_ppf(scipy.stats.norm.ppf, number)
    p, observed, expected = test_utils.chi_square_check(drawing(number), buckets, probs, nsamples=N)
    assert observed.sum() == N
    assert p == pytest.approx(scipy.stats.chisquare(observed, expected).pvalue, rel=1e-10)


def test_discrete_values_are_counted():
    generator = onp.random.default_rng(1)
    probs = [0.2, 0.5, 0.3]
    p, observed, expected = test_utils.chi_square_check(lambda n: generator.choice(3, n, p=probs), [0, 1, 2], probs, N)
    assert p == pytest.approx(scipy.stats.chisquare(observed, expected).pvalue, rel=1e-10)
    assert test_utils.chi_square_check(lambda n: onp.full(n, 7), [0, 1, 2], probs, N)[0] == 0.0


def test_right_generators_pass_and_wrong_ones_do_not():
    buckets, probs = test_utils.gen_buckets_probs_with_ppf(scipy.stats.norm.ppf, 10)
    found = test_utils.verify_generator(drawing(3), buckets, probs, nsamples=N, nrepeat=4)
    assert len(found) == 4
    # Off by a fifth of a standard deviation: the statistic is far out for 4000 samples.
    with pytest.raises(AssertionError, match=r"0 of 4 tests succeeded, at least 0\.8 are needed"):
        test_utils.verify_generator(drawing(3, loc=0.2), buckets, probs, nsamples=N, nrepeat=4)


def test_means_and_variances():
    assert test_utils.mean_check(drawing(4, loc=2.0, scale=3.0), 2.0, 3.0, N)
    assert not test_utils.mean_check(drawing(4, loc=2.3, scale=3.0), 2.0, 3.0, N)
    assert test_utils.var_check(drawing(5, scale=3.0), 3.0, N)
    assert not test_utils.var_check(drawing(5, scale=3.3), 3.0, N)


def test_bad_buckets_are_refused():
    with pytest.raises(ValueError, match="found 2, 3"):
        test_utils.chi_square_check(drawing(0), [0, 1], [0.2, 0.3, 0.5], N)
    with pytest.raises(ValueError, match="sum 1"):
        test_utils.chi_square_check(drawing(0), [0, 1], [0.2, 0.3], N)
    with pytest.raises(ValueError, match="asked for 10 samples and gave 3"):
        test_utils.mean_check(lambda n: onp.zeros(3), 0, 1, 10)


def test_shapes_error_locations_arrays_and_devices():
    test_utils.checkShapes(onp.zeros((2, 3)), mx.np.ones((2, 3)))
    with pytest.raises(AssertionError, match=r"\(2,\) and \(3,\)"):
        test_utils.checkShapes(onp.zeros(2), mx.np.ones(3))
    text = test_utils.locationError(onp.ones((2, 2)), onp.zeros((2, 2)), (1, 0), ("x", "y"), maxError=True)
    assert text == "Location of maximum error: (1, 0), x=1.00000000, y=0.00000000"
    assert (test_utils.create_2d_tensor(3, 2).asnumpy() == onp.arange(3)[:, None]).all()
    assert test_utils.list_gpus() == list(range(mx.num_gpus()))


# ---- progress ----


def test_speedometer_logs_speed_and_metric_and_resets_it(caplog):
    measure = metric.MAE()
    report = mx.callback.Speedometer(batch_size=4, frequent=2)
    with caplog.at_level(logging.INFO):
        for number in range(5):
            measure.update(mx.np.array([0.0]), mx.np.array([float(number)]))
            report(SimpleNamespace(epoch=3, nbatch=number, eval_metric=measure))
    lines = [record.getMessage() for record in caplog.records]
    assert [line.split("\t")[0] for line in lines] == ["Epoch[3] Batch [2]", "Epoch[3] Batch [4]"]
    # Means of 0, 1, 2 and, after the reset, of 3, 4.
    assert [line.split("\t")[2] for line in lines] == ["mae=1.000000", "mae=3.500000"]
    assert all(float(line.split("Speed: ")[1].split()[0]) > 0 for line in lines)
    assert measure.num_inst == 0


def test_speedometer_may_leave_the_metric_alone():
    measure = metric.MAE()
    report = mx.callback.Speedometer(4, 1, auto_reset=False)
    for number in range(2):
        measure.update(mx.np.array([0.0]), mx.np.array([1.0]))
        report(SimpleNamespace(epoch=0, nbatch=number, eval_metric=measure))
    assert measure.num_inst == 2


@pytest.mark.parametrize(
    ("done", "text"), [(0, "[----] 0%"), (1, "[=---] 34%"), (3, "[====] 100%"), (5, "[====] 100%")]
)
def test_progress_bar(done, text, caplog):
    with caplog.at_level(logging.INFO):
        mx.callback.ProgressBar(3, length=4)(SimpleNamespace(nbatch=done))
    assert [record.getMessage() for record in caplog.records] == [text]


def test_counts_of_callbacks_must_be_positive():
    with pytest.raises(ValueError, match="Speedometer: `frequent` must be positive, found 0"):
        mx.callback.Speedometer(4, 0)
    with pytest.raises(ValueError, match="ProgressBar: `total` must be positive, found 0"):
        mx.callback.ProgressBar(0)
