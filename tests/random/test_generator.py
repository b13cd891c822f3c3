"""Generators: seeds, states, independence, and the methods that only they have."""

import copy
import inspect
import pickle

import numpy as onp
import pytest
from scipy import stats

import mxnet as mx
from mxnet import autograd, np


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def draw(rng, n=64):
    return rng.random(n, dtype="float64").tolist()


# ---- seeds and streams ----


def test_the_same_seed_gives_the_same_numbers_and_another_does_not():
    seeds = [0, 1, 2**32, 2**64 + 5, [1, 2], [2, 1], [1, 2, 0], onp.arange(3), onp.random.SeedSequence(4)]
    found = [tuple(draw(np.random.default_rng(seed))) for seed in seeds]
    assert found == [tuple(draw(np.random.default_rng(seed))) for seed in seeds]
    assert len(set(found)) == len(seeds)


def test_an_integer_and_the_sequence_of_it_are_one_seed():
    assert draw(np.random.default_rng(9)) == draw(np.random.default_rng([9]))
    assert draw(np.random.default_rng(onp.int64(9))) == draw(np.random.default_rng(9))


def test_no_seed_takes_entropy():
    assert draw(np.random.default_rng()) != draw(np.random.default_rng())
    assert draw(np.random.default_rng(None)) != draw(np.random.default_rng(None))


def test_generators_and_bit_generators_pass_through(rng):
    assert np.random.default_rng(rng) is rng
    bits = np.random.BitGenerator(3)
    assert np.random.default_rng(bits).bit_generator is bits
    assert draw(np.random.Generator(np.random.BitGenerator(3))) == draw(np.random.default_rng(3))


@pytest.mark.parametrize(
    ("seed", "error", "message"),
    [
        (-1, ValueError, "found -1"),
        ([3, -7], ValueError, "found -7"),
        (1.5, TypeError, "float"),
        ("seed", TypeError, "str"),
        (onp.random.default_rng(0), TypeError, "Generator"),
    ],
)
def test_what_is_no_seed_is_refused(seed, error, message):
    with pytest.raises(error, match=message):
        np.random.default_rng(seed)
    with pytest.raises(TypeError, match="int"):
        np.random.Generator(5)


def test_generators_do_not_touch_the_global_stream_nor_each_other(rng):
    mx.random.seed(5)
    first = np.random.uniform(size=8).tolist()
    mx.random.seed(5)
    rng.normal(size=100)
    rng.integers(5, size=7)
    assert np.random.uniform(size=8).tolist() == first
    other = np.random.default_rng(11)
    np.random.normal(size=9)
    other.normal(size=100)
    other.integers(5, size=7)
    assert draw(rng) == draw(other)


def test_consecutive_calls_continue_the_stream(rng):
    assert draw(rng) != draw(rng)


def test_states_are_kept_and_restored(rng):
    rng.normal(size=5)
    state = rng.bit_generator.state
    assert state["bit_generator"] == "Philox4x32-10"
    first = draw(rng), rng.spawn(1)[0].random().item()
    assert rng.bit_generator.state != state
    rng.bit_generator.state = state
    assert (draw(rng), rng.spawn(1)[0].random().item()) == first
    with pytest.raises(ValueError, match="PCG64"):
        rng.bit_generator.state = {"bit_generator": "PCG64"}


def test_generators_are_pickled_and_copied_where_they_are(rng):
    rng.random(3)
    rng.spawn(2)
    for twin in (pickle.loads(pickle.dumps(rng)), copy.deepcopy(rng)):
        assert twin.bit_generator.state == rng.bit_generator.state
    twin = copy.deepcopy(rng)
    assert draw(twin) == draw(rng)
    assert draw(twin.spawn(1)[0]) == draw(rng.spawn(1)[0])


def test_spawned_generators_are_reproducible_and_unrelated(rng):
    children = rng.spawn(3)
    again = np.random.default_rng(11).spawn(3)
    assert [draw(c) for c in children] == [draw(c) for c in again]
    grandchildren = children[0].spawn(2)
    everyone = [rng, *children, *rng.spawn(2), *grandchildren]
    samples = onp.array([g.standard_normal(4000).asnumpy() for g in everyone])
    correlation = onp.corrcoef(samples) - onp.eye(len(everyone))
    # Four standard deviations of the correlation of independent samples.
    assert abs(correlation).max() < 4 / 4000**0.5
    assert rng.spawn(0) == []
    with pytest.raises(ValueError, match="-1"):
        rng.spawn(-1)


def test_numbers_do_not_depend_on_threads():
    before = mx._core.num_threads()
    found = set()
    try:
        for threads in (1, 2, 3):
            mx._core.set_num_threads(threads)
            g = np.random.default_rng(8)
            arrays = [
                g.standard_gamma(0.7, 100_001),
                g.poisson(np.full((50_001,), 30.0)),
                g.binomial(9, 0.3, 100_001),
                g.integers(0, 10**12, 100_001),
                g.choice(50, 100_001, p=[0.02] * 50),
                g.multinomial(9, [0.2, 0.8], 20_001),
                g.permuted(np.zeros((100, 1000)) + np.arange(1000), axis=1),
                g.vonmises(0.0, 3.0, 50_001),
            ]
            found.add(b"".join(x.asnumpy().tobytes() for x in arrays))
    finally:
        mx._core.set_num_threads(before)
    assert len(found) == 1


def test_a_failed_call_leaves_the_global_stream_current(rng):
    mx.random.seed(5)
    first = np.random.uniform().item()
    mx.random.seed(5)
    with pytest.raises(ValueError, match="-1"):
        rng.normal(0.0, -1.0)
    assert np.random.uniform().item() == first


# ---- methods ----

PARAMETERS = {
    "beta": (2.0, 0.7),
    "binomial": (20, 0.25),
    "chisquare": (3.0,),
    "exponential": (2.0,),
    "f": (5.0, 7.0),
    "gamma": (2.5, 2.0),
    "geometric": (0.3,),
    "gumbel": (1.0, 2.0),
    "hypergeometric": (7, 11, 5),
    "laplace": (1.0, 2.0),
    "logistic": (1.0, 2.0),
    "lognormal": (0.5, 0.75),
    "logseries": (0.6,),
    "negative_binomial": (2.5, 0.4),
    "noncentral_chisquare": (3.0, 2.0),
    "noncentral_f": (5.0, 9.0, 2.0),
    "normal": (1.0, 2.0),
    "pareto": (3.0,),
    "poisson": (4.0,),
    "power": (2.5,),
    "random": (),
    "rayleigh": (2.0,),
    "standard_cauchy": (),
    "standard_exponential": (),
    "standard_gamma": (0.5,),
    "standard_normal": (),
    "standard_t": (4.0,),
    "triangular": (-1.0, 2.0, 4.0),
    "uniform": (-2.0, 3.0),
    "vonmises": (1.0, 2.0),
    "wald": (2.0, 3.0),
    "weibull": (1.7,),
    "zipf": (2.5,),
}
COUNTS = {"binomial", "geometric", "hypergeometric", "logseries", "negative_binomial", "poisson", "zipf"}


@pytest.mark.parametrize("name", sorted(PARAMETERS))
def test_every_distribution_has_its_method(rng, name):
    parameters = PARAMETERS[name]
    method = getattr(rng, name)
    sample = method(*parameters, size=(2, 3))
    assert sample.shape == (2, 3)
    assert sample.dtype == ("int64" if name in COUNTS else "float32")
    assert method(*parameters).shape == ()
    assert method(*parameters, size=4, dtype="int32" if name in COUNTS else "float64").dtype == (
        "int32" if name in COUNTS else "float64"
    )
    # The function of the same name draws the same from the same stream.
    mx.random.seed(5)
    state = rng.bit_generator.state
    rng.bit_generator.state = {**state, "state": {"key": 5, "counter": 0}}
    assert method(*parameters, size=50).tolist() == getattr(np.random, name)(*parameters, size=50).tolist()


def test_signatures_are_those_of_numpy():
    for name, method in inspect.getmembers(onp.random.Generator, callable):
        # That every method is there is what the tables of the public API are for.
        if name.startswith("_") or not hasattr(np.random.Generator, name):
            continue
        ours = list(inspect.signature(getattr(np.random.Generator, name)).parameters.values())
        theirs = list(inspect.signature(method).parameters.values())
        wanted = [(p.name, p.kind) for p in theirs if p.name != "self"]
        assert [(p.name, p.kind) for p in ours if (p.name, p.kind) in wanted] == wanted, name


def test_out_receives_the_samples(rng):
    for name, parameters in (
        ("random", ()),
        ("standard_normal", ()),
        ("standard_exponential", ()),
        ("standard_gamma", (2.0,)),
    ):
        out = np.zeros((3, 2), "float64")
        twin = copy.deepcopy(rng)
        assert getattr(rng, name)(*parameters, size=(3, 2), out=out) is out
        assert out.tolist() == getattr(twin, name)(*parameters, size=(3, 2), dtype="float64").tolist()


def test_exponential_methods_are_checked(rng):
    assert rng.standard_exponential(3, method="inv").shape == (3,)
    with pytest.raises(ValueError, match="'box'"):
        rng.standard_exponential(method="box")


def test_integers_may_include_the_end(rng):
    x = rng.integers(1, 6, size=5000, endpoint=True).asnumpy()
    assert set(x.tolist()) == {1, 2, 3, 4, 5, 6}
    assert stats.chisquare(onp.bincount(x)[1:]).pvalue > 1e-3
    assert set(rng.integers(2, size=200).tolist()) == {0, 1}
    assert rng.integers(5, 5, endpoint=True).item() == 5
    top = 2**64 - 1
    assert rng.integers(top - 1, top, size=50, dtype="uint64", endpoint=True).asnumpy().min() >= top - 1
    assert set(rng.integers(0, 1, 100, dtype=bool, endpoint=True).tolist()) == {False, True}
    low, high = np.array([0, 10]), np.array([3, 10])
    x = rng.integers(low, high, size=(500, 2), endpoint=True).asnumpy()
    assert set(x[:, 0].tolist()) == {0, 1, 2, 3}
    assert set(x[:, 1].tolist()) == {10}
    with pytest.raises(ValueError, match="low > high: 6 and 5"):
        rng.integers(6, 5, endpoint=True)
    with pytest.raises(ValueError, match="element 1: 3 and 2"):
        rng.integers(np.array([0, 3]), np.array([1, 2]), endpoint=True).asnumpy()
    with pytest.raises(ValueError, match="high is out of bounds for int8 at element 0"):
        rng.integers(np.array([0]), np.array([200]), dtype="int8").asnumpy()


def test_integers_of_large_bounds_in_arrays(rng):
    low = np.array([2**63, 2**64 - 5], dtype="uint64")
    high = np.array([2**63 + 2, 2**64 - 1], dtype="uint64")
    x = rng.integers(low, high, size=(300, 2), dtype="uint64", endpoint=True).asnumpy()
    assert set(x[:, 0].tolist()) == {2**63, 2**63 + 1, 2**63 + 2}
    assert set(x[:, 1].tolist()) == {2**64 - k for k in (1, 2, 3, 4, 5)}
    whole = rng.integers(np.array([-(2**63)]), np.array([2**63 - 1]), size=4000, endpoint=True).asnumpy()
    assert stats.kstest(whole / 2.0**63, stats.uniform(-1, 2).cdf).pvalue > 1e-3


def test_bytes_are_uniform(rng):
    data = rng.bytes(25_600)
    assert isinstance(data, bytes)
    assert len(data) == 25_600
    assert stats.chisquare(onp.bincount(onp.frombuffer(data, "uint8"), minlength=256)).pvalue > 1e-3
    assert rng.bytes(0) == b""


# ---- choices and orders ----


def test_choice_takes_slices_along_an_axis(rng):
    x = np.array(onp.arange(24).reshape(2, 4, 3))
    drawn = rng.choice(x, 5, axis=1)
    assert drawn.shape == (2, 5, 3)
    columns = {tuple(c.ravel()) for c in onp.moveaxis(x.asnumpy(), 1, 0)}
    assert {tuple(c.ravel()) for c in onp.moveaxis(drawn.asnumpy(), 1, 0)} <= columns
    whole = rng.choice(x, 4, replace=False, axis=-2).asnumpy()
    assert {tuple(c.ravel()) for c in onp.moveaxis(whole, 1, 0)} == columns
    assert rng.choice(x, (2, 2), axis=2).shape == (2, 4, 2, 2)
    assert rng.choice(x).shape == (4, 3)
    with pytest.raises(ValueError, match="5 of 4"):
        rng.choice(x, 5, replace=False, axis=1)
    with pytest.raises(ValueError, match=r"\(4,\)"):
        rng.choice(x, 1, p=[0.5, 0.5], axis=1)


@pytest.mark.parametrize(("n", "count"), [(10, 4), (1000, 3), (5, 5)])
def test_choices_without_replacement_are_different_and_equally_likely(rng, n, count):
    hits = onp.zeros(n)
    for _ in range(400):
        drawn = rng.choice(n, count, replace=False).tolist()
        assert len(set(drawn)) == count
        hits[drawn] += 1
    if n <= 10:
        # Without replacement the counts spread less than those of independent draws, so the test is on the safe side.
        assert stats.chisquare(hits).pvalue > 1e-3
    first = [rng.choice(5, 2, replace=False).tolist()[0] for _ in range(500)]
    assert stats.chisquare(onp.bincount(first, minlength=5)).pvalue > 1e-3


def test_a_choice_of_few_from_2_to_the_60_is_uniform(rng):
    drawn = rng.choice(2**60, 100, replace=False).asnumpy()
    assert len(set(drawn.tolist())) == 100
    assert stats.kstest(drawn / 2.0**60, "uniform").pvalue > 1e-3


def test_permutation_and_shuffle_along_an_axis(rng):
    x = np.array(onp.arange(60).reshape(3, 20))
    moved = rng.permutation(x, axis=1)
    assert sorted(map(tuple, moved.asnumpy().T)) == sorted(map(tuple, x.asnumpy().T))
    assert moved.tolist() != x.tolist()
    assert sorted(rng.permutation(9).tolist()) == list(range(9))
    y = x.copy()
    assert rng.shuffle(y, axis=1) is None
    assert sorted(map(tuple, y.asnumpy().T)) == sorted(map(tuple, x.asnumpy().T))
    assert y.tolist() != x.tolist()
    items = list(range(30))
    rng.shuffle(items)
    assert sorted(items) == list(range(30))
    assert items != list(range(30))
    with pytest.raises(TypeError, match="tuple"):
        rng.shuffle((1, 2))
    with pytest.raises(ValueError, match="1"):
        rng.shuffle([1, 2], axis=1)


def test_permuted_orders_every_line_on_its_own(rng):
    x = np.array(onp.tile(onp.arange(30), (50, 1)))
    lines = rng.permuted(x, axis=1).asnumpy()
    assert (onp.sort(lines, axis=1) == x.asnumpy()).all()
    assert len({tuple(line) for line in lines}) == 50
    columns = rng.permuted(x.T, axis=0).asnumpy()
    assert (onp.sort(columns, axis=0) == x.asnumpy().T).all()
    whole = rng.permuted(x)
    assert whole.shape == x.shape
    assert sorted(whole.asnumpy().ravel()) == sorted(x.asnumpy().ravel())
    out = x.copy()
    assert rng.permuted(out, axis=1, out=out) is out
    assert (onp.sort(out.asnumpy(), axis=1) == x.asnumpy()).all()
    with pytest.raises(ValueError, match=r"\(50, 30\).*\(30,\)"):
        rng.permuted(x, out=np.zeros((30,)))
    firsts = rng.permuted(np.zeros((3000, 1), "int64") + np.arange(3), axis=1)[:, 0]
    assert stats.chisquare(onp.bincount(firsts.asnumpy())).pvalue > 1e-3


# ---- rows of counts ----


def test_multinomial_parameters_broadcast(rng):
    n = np.array([[5], [50]])
    p = np.array([[0.5, 0.5, 0.0], [0.1, 0.2, 0.7]])
    x = rng.multinomial(n, p).asnumpy()
    assert x.shape == (2, 2, 3)
    assert (x.sum(-1) == [[5, 5], [50, 50]]).all()
    assert (x[:, 0, 2] == 0).all()
    x = rng.multinomial(n, p, size=(4000, 2, 2)).asnumpy()
    # Five standard errors.
    spread = 5 * onp.sqrt(n.asnumpy()[..., None] * p.asnumpy() * (1 - p.asnumpy()) / 4000)
    assert (abs(x.mean(0) - n.asnumpy()[..., None] * p.asnumpy()) <= spread + 1e-12).all()
    assert rng.multinomial(3, [0.2, 0.8]).shape == (2,)
    with pytest.raises(ValueError, match=r"\(2, 2\)[\s\S]*\(2, 3\)"):
        rng.multinomial(n, p, size=(2, 3))
    with pytest.raises(ValueError, match="found -1 at element 1"):
        rng.multinomial(np.array([3, -1]), [0.5, 0.5]).asnumpy()
    with pytest.raises(ValueError, match=r"1\.2\d*, above 1 \(row 1\)"):
        rng.multinomial(3, np.array([[0.5, 0.5, 0.0], [0.6, 0.6, 0.0]])).asnumpy()
    with pytest.raises(TypeError, match="integers"):
        rng.multinomial(2.5, [0.5, 0.5])


def test_choices_that_are_not_shuffled_come_in_their_own_order(rng):
    seen = set()
    for p in (None, [0.1, 0.2, 0.1, 0.2, 0.1, 0.2, 0.1]):
        for _ in range(500):
            drawn = rng.choice(7, 3, replace=False, p=p, shuffle=False).tolist()
            assert drawn == sorted(set(drawn))
            seen.add(tuple(drawn))
        # Every one of the 35 sets of three comes up.
        assert len(seen) == 35
        seen.clear()
    orders = [rng.choice(7, 3, replace=False).tolist() for _ in range(50)]
    assert any(order != sorted(order) for order in orders)
    same = [np.random.default_rng(4).choice(1000, (2, 20), False, shuffle=shuffle) for shuffle in (True, False)]
    assert (onp.sort(same[0].asnumpy().ravel()) == same[1].asnumpy().ravel()).all()
    again = [np.random.default_rng(4).choice(5, 20, shuffle=shuffle).tolist() for shuffle in (True, False)]
    assert again[0] == again[1]


def test_exponential_numbers_by_inversion_are_those_of_uniform_ones():
    for dtype, digits in (("float32", 24), ("float64", 53)):
        u = np.random.default_rng(9).random(1000, dtype=dtype).asnumpy().astype("float64")
        out = np.zeros(1000, dtype=dtype)
        x = np.random.default_rng(9).standard_exponential(1000, dtype, "inv", out)
        assert x is out
        error = onp.abs(x.asnumpy() + onp.log1p(-u))
        assert (error <= 4 * 2.0**-digits * onp.maximum(1, x.asnumpy())).all()
        other = np.random.default_rng(9).standard_exponential(1000, dtype)
        assert (other.asnumpy() != x.asnumpy()).any()


@pytest.mark.parametrize("method", ["marginals", "count"])
def test_multivariate_hypergeometric(rng, method):
    colors = [16, 8, 0, 4]
    x = rng.multivariate_hypergeometric(colors, 6, size=(5000,), method=method).asnumpy()
    other = rng.multivariate_hypergeometric(colors, 6, size=(2, 0, 3), method=method)
    assert other.shape == (2, 0, 3, 4)
    assert x.shape == (5000, 4)
    assert (x.sum(1) == 6).all()
    assert (x <= colors).all()
    for i in (0, 1, 3):
        expected = stats.hypergeom(28, colors[i], 6).pmf(onp.arange(7)) * 5000
        found = onp.bincount(x[:, i], minlength=7)
        keep = expected > 5
        spread = ((found - expected)[keep] ** 2 / expected[keep]).sum()
        assert stats.chi2(keep.sum() - 1).sf(spread) > 1e-3
        assert found[expected < 1e-9].sum() == 0
    assert rng.multivariate_hypergeometric(colors, 0, None, method).tolist() == [0, 0, 0, 0]
    assert rng.multivariate_hypergeometric(colors, 28, None, method).tolist() == colors
    with pytest.raises(ValueError, match="29, above sum\\(colors\\), which is 28"):
        rng.multivariate_hypergeometric(colors, 29, None, method).asnumpy()
    with pytest.raises(ValueError, match="found -8 at element 1"):
        rng.multivariate_hypergeometric([16, -8], 3, None, method).asnumpy()
    with pytest.raises(ValueError, match="-3"):
        rng.multivariate_hypergeometric(colors, -3, None, method)
    with pytest.raises(ValueError, match="urn"):
        rng.multivariate_hypergeometric(colors, 3, method="urn")


def test_methods_are_recorded(rng):
    loc = np.array([1.0, 2.0])
    loc.attach_grad()
    with autograd.record():
        y = rng.normal(loc, 2.0, size=(5, 2))
    y.backward()
    assert loc.grad.tolist() == [5, 5]


@pytest.mark.parametrize("draw", ["random()", "standard_normal()", "standard_exponential()", "standard_gamma(2.0)"])
def test_out_alone_says_how_much_is_drawn(draw):
    name, _, args = draw.partition("(")
    args = [float(x) for x in args.rstrip(")").split(",") if x]
    for shape in ((3,), (2, 2), ()):
        out = np.zeros(shape, dtype="float64")
        rng, same = np.random.default_rng(5), np.random.default_rng(5)
        assert getattr(rng, name)(*args, out=out) is out
        assert out.tolist() == getattr(same, name)(*args, size=shape, dtype="float64").tolist()
    with pytest.raises(ValueError, match="shape"):
        getattr(np.random.default_rng(1), name)(*args, size=2, out=np.zeros(3))


class TestSeedSequence:
    def test_children_are_seeds_of_different_streams(self):
        parent = np.random.SeedSequence(12345)
        children = parent.spawn(3) + parent.spawn(2)
        seen = {tuple(np.random.default_rng(child).random(4).tolist()) for child in (parent, *children)}
        assert len(seen) == 6
        assert [child.spawn_key for child in children] == [(i,) for i in range(5)]
        assert parent.n_children_spawned == 5
        assert children[1].spawn(1)[0].spawn_key == (1, 0)

    def test_the_same_entropy_gives_the_same_words(self):
        for entropy in (3, [1, 2**40], 2**100):
            words = np.random.SeedSequence(entropy).generate_state(8)
            assert words.dtype == "uint32" and words.shape == (8,)
            assert words.tolist() == np.random.SeedSequence(entropy).generate_state(8).tolist()
        assert np.random.SeedSequence(3).generate_state(2, np.uint64).dtype == "uint64"
        child = np.random.SeedSequence(3).spawn(2)[1]
        same = np.random.SeedSequence(3, spawn_key=(1,))
        assert child.generate_state(4).tolist() == same.generate_state(4).tolist()

    def test_everything_given_counts(self):
        sequences = [
            np.random.SeedSequence(3),
            np.random.SeedSequence([3, 0]),
            np.random.SeedSequence(3, spawn_key=(0,)),
            np.random.SeedSequence(3, spawn_key=(0, 0)),
            np.random.SeedSequence(3, pool_size=8),
            np.random.SeedSequence(),
        ]
        assert len({tuple(s.generate_state(4).tolist()) for s in sequences}) == len(sequences)

    def test_state_and_text_are_numpys(self):
        for arguments in ({"entropy": 7}, {"entropy": [1, 2], "spawn_key": (3,)}):
            ours, theirs = np.random.SeedSequence(**arguments), onp.random.SeedSequence(**arguments)
            assert ours.state == theirs.state
            assert ours.entropy == theirs.entropy and ours.spawn_key == theirs.spawn_key
        assert repr(np.random.SeedSequence(7)) == "SeedSequence(entropy=7)"

    def test_what_is_no_seed_is_refused(self):
        with pytest.raises(TypeError):
            np.random.SeedSequence("a")
        with pytest.raises(ValueError, match="at least 0"):
            np.random.SeedSequence(-1)
        with pytest.raises(ValueError, match="pool"):
            np.random.SeedSequence(1, pool_size=2)
        with pytest.raises(ValueError, match="uint32"):
            np.random.SeedSequence(1).generate_state(2, "int64")


class TestPhilox:
    def test_it_is_the_generator_of_default_rng(self):
        ours = np.random.Generator(np.random.Philox(5)).normal(size=4)
        assert ours.tolist() == np.random.default_rng(5).normal(size=4).tolist()
        assert isinstance(np.random.Philox(5), np.random.BitGenerator)

    def test_keys_and_counters(self):
        bits = np.random.Philox(key=2**40, counter=3)
        assert bits.state["state"] == {"key": 2**40, "counter": 3}
        assert np.random.Philox(5, counter=1).state["state"]["key"] == np.random.Philox(5).state["state"]["key"]
        with pytest.raises(ValueError, match="both"):
            np.random.Philox(1, key=2)
        with pytest.raises(ValueError, match="2\\*\\*64"):
            np.random.Philox(key=-1)

    def test_other_algorithms_say_what_to_use(self):
        for name in ("PCG64", "MT19937", "SFC64"):
            with pytest.raises(AttributeError, match="Philox"):
                getattr(np.random, name)


@pytest.mark.parametrize("bounds", [(2, 1), (0.5, 0.25), ([1, 2], [0, 3]), ([1, 2], 1), (-1,), (1, 1), (1, 2)])
def test_uniform_bounds_in_the_other_order_are_refused_where_numpy_refuses_them(bounds):
    if bounds in ((1, 1), (1, 2)):
        assert np.random.default_rng(1).uniform(*bounds).shape == ()
        return
    for module in (onp, np):
        if bounds != (-1,):
            with pytest.raises(ValueError, match="high - low < 0"):
                module.random.default_rng(1).uniform(*bounds)
        # The older functions take them.
        module.random.seed(1)
        assert module.random.uniform(*bounds) is not None
