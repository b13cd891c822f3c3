"""Calls that mean the same draw the same numbers, from the same blocks of the stream, and report the same errors.

Named devices, methods of generators, lists, separate sizes and recording make no difference to the samples.
"""

from functools import partial

import numpy as onp
import pytest

import mxnet as mx
from mxnet import autograd, np

PARAMETERS = {
    "beta": [(2.0, 0.7), (0.1, 0.1)],
    "binomial": [(20, 0.25), (1000, 0.3), (5, 0.0), (10**6, 1e-6)],
    "chisquare": [(3.0,), (0.5,)],
    "exponential": [(), (2.0,)],
    "f": [(5.0, 7.0)],
    "gamma": [(2.5, 2.0), (0.3, 1.0), (0.0,), (3,)],
    "geometric": [(0.3,), (1.0,), (1e-9,)],
    "gumbel": [(), (1.0, 2.0)],
    "hypergeometric": [(7, 11, 5), (4000, 3000, 2000)],
    "laplace": [(), (1.0, 2.0)],
    "logistic": [(), (1.0, 2.0)],
    "lognormal": [(), (0.5, 0.75)],
    "logseries": [(0.9,), (0.0,)],
    "negative_binomial": [(2.5, 0.4), (1000.0, 0.01)],
    "noncentral_chisquare": [(3.0, 2.0), (0.7, 2.0)],
    "noncentral_f": [(5.0, 9.0, 2.0), (0.7, 9.0, 2.0)],
    "normal": [(), (1.0, 2.0)],
    "pareto": [(3.0,)],
    "poisson": [(4.0,), (100.0,), (1e5,), ()],
    "power": [(2.5,)],
    "randint": [(1000,), (-5, 10**12)],
    "random": [()],
    "random_sample": [()],
    "rayleigh": [(), (2.0,)],
    "standard_cauchy": [()],
    "standard_exponential": [()],
    "standard_gamma": [(0.5,), (40.0,)],
    "standard_normal": [()],
    "standard_t": [(4.0,)],
    "triangular": [(-1.0, 2.0, 4.0)],
    "uniform": [(), (-2.0, 3.0)],
    "vonmises": [(0.0, 2.0), (1.0, 2.0), (1.0, 0.0)],
    "wald": [(2.0, 3.0)],
    "weibull": [(1.7,)],
    "zipf": [(1.5,)],
}
INTEGERS = {"binomial", "geometric", "hypergeometric", "logseries", "negative_binomial", "poisson", "randint", "zipf"}
SIZES = [None, 0, 1, 4, (2, 2), (3, 0), (5, 7), 64, 65]


def seeded(draw):
    """What is drawn with a seed, and where the stream is then."""
    mx.random.seed(20)
    return draw().asnumpy(), np.random.get_state(legacy=False)["offset"]


def same(draw, expected):
    (found, end), (want, want_end) = seeded(draw), seeded(expected)
    assert found.dtype == want.dtype
    assert found.shape == want.shape
    assert found.tobytes() == want.tobytes()
    assert end == want_end


def same_with_device(function, parameters, **options):
    same(lambda: function(*parameters, **options), lambda: function(*parameters, **options, device=mx.cpu()))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", sorted(PARAMETERS))
def test_a_named_device_makes_no_difference_to_samples_of_numbers(name, size):
    function = getattr(np.random, name)
    dtypes = [None, "int64", "float64"] if name in INTEGERS else [None, "float32", "float64", "float16"]
    for parameters in PARAMETERS[name]:
        for dtype in dtypes[: 2 if name == "randint" else None]:
            same_with_device(function, parameters, size=size, dtype=dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", sorted(n for n in PARAMETERS if PARAMETERS[n][-1] and n != "randint"))
def test_a_named_device_makes_no_difference_to_samples_of_arrays(name, dtype):
    function = getattr(np.random, name)
    for parameters in filter(None, PARAMETERS[name]):
        for shape in [(), (3,), (2, 2)]:
            arrays = [np.full(shape, x, dtype=dtype) for x in parameters]
            mixed = [*arrays[:-1], parameters[-1]]
            for given in (arrays, mixed):
                for options in ({}, {"size": shape}, {"size": (2, *shape)}, {"dtype": "float64"}):
                    same_with_device(function, given, **options)


@pytest.mark.parametrize("size", [None, 0, 1, (2, 2), 50])
@pytest.mark.parametrize("shares", [[0.2, 0.8], (0.1, 0.2, 0.7), [1.0]])
def test_lists_give_the_samples_that_arrays_give(shares, size):
    array, size = np.array(shares), size if size is not None else ()
    same(lambda: np.random.multinomial(20, shares, size), lambda: np.random.multinomial(20, array, size))
    same(lambda: np.random.dirichlet(shares, size), lambda: np.random.dirichlet(array, size))
    wide = np.array(shares).astype("float64")
    same(
        lambda: np.random.dirichlet(shares, size, dtype="float64"),
        lambda: np.random.dirichlet(wide.astype("float32"), size, dtype="float64"),
    )


def test_shapes_as_arguments_give_the_samples_that_a_tuple_gives():
    same(lambda: np.random.rand(2, 3), lambda: np.random.random((2, 3)))
    same(lambda: np.random.randn(2, 3), lambda: np.random.standard_normal((2, 3)))
    same(lambda: np.random.rand(), lambda: np.random.random(()))


def test_calls_without_arguments_give_one_number():
    names = [n for n in sorted(PARAMETERS) if () in PARAMETERS[n]]
    for name in names:
        function = getattr(np.random, name)
        same(function, lambda function=function: function(device=mx.cpu()))
        same(lambda function=function: function(size=None, dtype=None), function)
        with pytest.raises(TypeError, match="takes at most"):
            function(*[None] * 9)
    generator = np.random.default_rng(3)
    for name in set(names) & set(dir(generator)):
        state = generator.bit_generator.state
        found = getattr(generator, name)()
        generator.bit_generator.state = state
        want = getattr(generator, name)(device=mx.cpu())
        assert (found.tolist(), found.dtype) == (want.tolist(), want.dtype), name
        assert found.shape == ()
    for name in sorted(set(PARAMETERS) - set(names)):
        with pytest.raises(TypeError):
            getattr(np.random, name)()


def test_generators_draw_what_the_functions_draw_from_the_same_place():
    generator = np.random.default_rng(3)
    for name in sorted(set(PARAMETERS) - {"randint", "random_sample"}):
        for parameters in PARAMETERS[name]:
            if name == "triangular" or parameters or name.startswith(("standard", "random")):
                state = generator.bit_generator.state
                found = getattr(generator, name)(*parameters, size=(2, 2)).asnumpy()
                generator.bit_generator.state = state
                want = getattr(generator, name)(*parameters, size=(2, 2), device=mx.cpu()).asnumpy()
                assert found.tobytes() == want.tobytes(), name
    for endpoint in (False, True):
        state = generator.bit_generator.state
        found = generator.integers(0, 3, (8, 8), endpoint=endpoint)
        generator.bit_generator.state = state
        assert found.tolist() == generator.integers(0, 3, (8, 8), endpoint=endpoint, device=mx.cpu()).tolist()
        assert found.max().item() == 2 + endpoint


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("normal", (0.0, -1.0)),
        ("uniform", (0.0, float("inf"))),
        ("gamma", (-1.0,)),
        ("binomial", (3, 1.5)),
        ("binomial", (2.5, 0.5)),
        ("poisson", (float("nan"),)),
        ("hypergeometric", (3, 4, 8)),
        ("wald", (1.0, 0.0)),
        ("triangular", (1.0, 0.0, 2.0)),
        ("randint", (5, 5)),
        ("randint", (0, 300, 4, "int8")),
    ],
)
def test_what_is_refused_is_refused_with_the_same_words_and_nothing_drawn_before(name, parameters):
    function = getattr(np.random, name)
    found = []
    for options in ({}, {"device": mx.cpu()}):
        mx.random.seed(20)
        with pytest.raises((ValueError, OverflowError)) as caught:
            function(*parameters, **options)
        found.append((str(caught.value), np.random.get_state()))
    assert found[0] == found[1]


def test_array_parameters_out_of_range_are_refused_with_their_place():
    with pytest.raises(ValueError, match=r"`scale` must be at least 0, found -1 at element 1"):
        np.random.normal(np.zeros(2), np.array([1.0, -1.0])).wait_to_read()
    with pytest.raises(ValueError, match=r"probability 0 is -0\.5"):
        np.random.multinomial(3, [-0.5, 1.5], 4)


def test_tables_of_counts_are_those_of_the_parameters_at_hand():
    def draw(order):
        drawn = {}
        for mean in order:
            mx.random.seed(int(mean))
            drawn[mean] = np.random.poisson(mean, 8).tolist() + np.random.binomial(int(mean), 0.5, 8).tolist()
        return drawn

    means = [3.0, 4.0, 5.0]
    assert draw(means * 2) == draw(means[::-1] * 2)


def test_gradients_flow_through_small_arrays_of_parameters():
    loc, scale = np.zeros((2, 2)), np.ones((2, 2))
    loc.attach_grad()
    scale.attach_grad()
    with autograd.record():
        y = np.random.normal(loc, scale)
    y.backward()
    assert loc.grad.tolist() == [[1, 1], [1, 1]]
    assert onp.allclose(scale.grad.asnumpy(), y.asnumpy())


def test_samples_of_numbers_are_the_same_while_recording():
    def recorded():
        with autograd.record():
            return np.random.wald(2.0, 3.0, 4)

    same(recorded, lambda: np.random.wald(2.0, 3.0, 4))


@pytest.mark.parametrize("name", sorted(PARAMETERS))
def test_errors_about_missing_devices_name_the_function_that_was_called(name):
    with pytest.raises(mx.error.DeviceError, match=rf"^{'random_power' if name == 'power' else name}: "):
        getattr(np.random, name)(*PARAMETERS[name][0], size=(2, 2), device=mx.gpu(77))


def test_shuffled_rows_are_those_of_a_permutation():
    def shuffled(x):
        y = x + 0
        np.random.shuffle(y)
        return y

    for n in (0, 1, 2, 7, 5000):
        same(partial(shuffled, np.arange(n)), partial(np.random.permutation, np.arange(n)))
