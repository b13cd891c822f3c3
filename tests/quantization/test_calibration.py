"""Thresholds of histograms, and collectors of ranges."""

import numpy as onp
import pytest

from mxnet import np, npx
from mxnet.contrib._calibration import EntropyCollector, MinMaxCollector

RNG = onp.random.default_rng(5)


def divergence(counts, reach, levels):
    """The divergence of one candidate, after the description of the method."""
    middle = len(counts) // 2
    inside = counts[middle - reach : middle + reach + 1].astype("float64")
    p = inside.copy()
    p[0] += counts[: middle - reach].sum()
    p[-1] += counts[middle + reach + 1 :].sum()
    width = len(inside) // levels
    q = onp.zeros_like(p)
    for level in range(levels):
        part = slice(level * width, len(inside) if level == levels - 1 else (level + 1) * width)
        if (full := (p[part] != 0).sum()) > 0:
            q[part] = inside[part].sum() / full
    q[p == 0] = 0
    smoothed = []
    for x in (p, q):
        empty, full = (x == 0).sum(), (x != 0).sum()
        if full == 0 or 1e-4 * empty / full >= 1:
            return onp.inf
        smoothed.append(onp.where(x == 0, 1e-4, x - 1e-4 * empty / full))
    p, q = (x / x.sum() for x in smoothed)
    known = (p > 0) & (q > 0)
    return (p[known] * onp.log(p[known] / q[known])).sum()


@pytest.mark.parametrize("levels", [15, 31])
@pytest.mark.parametrize("draw", [RNG.normal, RNG.laplace, RNG.uniform])
def test_the_threshold_has_the_smallest_divergence(draw, levels):
    x = draw(size=20_000)
    bound = abs(x).max()
    counts, edges = onp.histogram(x, bins=301, range=(-bound, bound))
    counts, edges = counts.astype("float32"), edges.astype("float32")
    reaches = range(levels // 2, 151)
    all_of_them = [divergence(counts, reach, levels) for reach in reaches]
    best = int(onp.argmin(all_of_them))
    threshold, found = npx.contrib_calibrate_entropy(np.array(counts), np.array(edges), num_quantized_bins=levels)
    assert threshold.item() == edges[150 + reaches[best] + 1]
    assert found.item() == pytest.approx(all_of_them[best], rel=1e-5)


def test_the_threshold_is_that_of_mxnet():
    x = onp.random.RandomState(0).randn(100_000).astype("float32")
    bound = abs(x).max()
    counts, edges = onp.histogram(x, bins=8001, range=(-bound, bound))
    threshold, found = npx.contrib_calibrate_entropy(np.array(counts), np.array(edges))
    # 2.0.0b1 computes in float32.
    assert threshold.item() == pytest.approx(4.014019012451172, rel=1e-6)
    assert found.item() == pytest.approx(0.02056553, rel=2e-3)


@pytest.mark.parametrize(("bins", "edges", "levels"), [(8, 9, 3), (9, 9, 3), (9, 10, 4), (9, 10, 11), (9, 10, -1)])
def test_histograms_that_do_not_fit_are_refused(bins, edges, levels):
    with pytest.raises(
        ValueError, match=rf"\({bins},\), `hist_edges` \({edges},\) and `num_quantized_bins` is {levels}"
    ):
        npx.contrib_calibrate_entropy(np.ones(bins), np.ones(edges), num_quantized_bins=levels)


def test_smallest_and_largest_of_all_batches():
    collector = MinMaxCollector()
    for batch in ([1.0, 2.0], [-3.0, 0.5]):
        collector.collect("a", "add", np.array(batch))
    collector.collect("b", "", np.array([7.0]))
    assert collector.post_collect() == {"a": (-3.0, 2.0), "b": (7.0, 7.0)}


@pytest.mark.parametrize("parts", [(1.0, 0.5), (0.3, 1.0, 2.5), (0.0, 1.0)])
def test_histograms_of_batches_join(parts):
    """Batches one after the other have the counts of all together, in bins of the width of the first."""
    batches = [part * RNG.uniform(-1, 1, 5000).astype("float32") for part in parts]
    collector = EntropyCollector("int8")
    for batch in batches:
        collector.collect("x", "", np.array(batch))
    histogram = collector._histograms["x"]
    whole = onp.concatenate(batches)
    counts = histogram.counts.asnumpy()
    assert (histogram.low, histogram.high) == (whole.min(), whole.max())
    assert counts.size % 2 == 1
    assert counts.sum() == whole.size
    assert histogram.bound >= abs(whole).max()
    want, _ = onp.histogram(whole, bins=counts.size, range=(-histogram.bound, histogram.bound))
    # Numbers at a bound of bins may fall on either side of it.
    assert abs(counts - want).sum() <= 0.01 * whole.size


def test_the_range_of_positive_numbers_begins_at_zero():
    x = abs(RNG.normal(size=20_000)).astype("float32")
    ranges = {}
    for dtype in ("auto", "int8"):
        collector = EntropyCollector(dtype)
        collector.collect("x", "relu", np.array(x))
        ranges[dtype] = collector.post_collect()["x"]
    assert ranges["auto"][0] == 0
    assert ranges["int8"][0] == -ranges["int8"][1]
    assert 0 < ranges["auto"][1] <= abs(x).max() * 1.001
