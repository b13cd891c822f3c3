"""Each condition in the Raises section of an operator raises: there is a call for each."""

import inspect
import re

import pytest

import mxnet
from mxnet import _core, np, npx

# Operator -> calls that meet the condition of its entry; the class is the one that its section names.
CALLS = {
    "clip": ["np.clip(np.ones(2), 0, 1, min=0)", "np.clip(np.array([True]), None, None)"],
    "nan_to_num": ["np.nan_to_num(np.ones(2), nan=np.ones(3))", "np.nan_to_num(np.ones(2), nan=1j)"],
    "isclose": ["np.isclose(np.ones(2), np.ones(2), 1j)"],
    "round": ["np.round(np.ones(1), 2**40)"],
    "isposinf": ["np.isposinf(np.array([1j]))"],
    "isneginf": ["np.isneginf(np.array([1j]))"],
    "nonzero": ["np.nonzero(np.array(1.0))"],
    "compress": ["np.compress(np.ones((2, 2)), np.ones(3))", "np.compress(np.ones(5), np.ones(3))"],
    "extract": ["np.extract(np.ones(5), np.ones(3))"],
    "pick": ["npx.pick(np.ones((2, 3)), np.ones(3))"],
    "embedding": ["npx.embedding(np.array([0]), np.ones(3))", "npx.embedding(np.array([0]), np.ones((3, 2)), 4)"],
    "one_hot": ["npx.one_hot(np.array([0]), -1)"],
    "gather_nd": [
        "npx.gather_nd(np.ones((2, 2)), np.zeros((3, 1)))",
        "npx.gather_nd(np.ones((2, 2)), np.array([[5]]))",
    ],
    "scatter_nd": [
        "npx.scatter_nd(np.ones(3), np.zeros((3, 1)), (2, 2))",
        "npx.scatter_nd(np.ones(3), np.array([[0, 0]]), (2,))",
        "npx.scatter_nd(np.ones(2), np.array([[5, 0]]), (2,))",
    ],
    "index_add": [
        "npx.index_add(np.ones((2, 2)), np.zeros((3, 1)), np.ones(1))",
        "npx.index_add(np.ones((2, 2)), np.array([[0]]), np.ones(3))",
        "npx.index_add(np.ones((2, 2)), np.array([[5]]), np.ones(1))",
    ],
    "index_update": [
        "npx.index_update(np.ones((2, 2)), np.zeros((3, 1)), np.ones(1))",
        "npx.index_update(np.ones((2, 2)), np.array([[0]]), np.ones(3))",
        "npx.index_update(np.ones((2, 2)), np.array([[5]]), np.ones(1))",
    ],
    "tril": ["np.tril(np.array(1.0))"],
    "triu": ["np.triu(np.array(1.0))"],
    "sort": ["np.sort(np.ones(2), order='f')", "np.sort(np.ones(2), kind='x')"],
    "argsort": ["np.argsort(np.ones(2), order='f')", "np.argsort(np.ones(2), kind='x')"],
    "partition": ["np.partition(np.ones(2), 5)", "np.partition(np.ones(2), 0, order='f')"],
    "argpartition": ["np.argpartition(np.ones(2), 5)", "np.argpartition(np.ones(2), 0, order='f')"],
    "topk": ["npx.topk(np.ones((2, 3)), k=5)"],
    "searchsorted": ["np.searchsorted(np.ones((2, 2)), 1)", "np.searchsorted(np.ones(2), 1, sorter=np.array([0]))"],
    "rfft": ["np.fft.rfft(np.ones(3), 0)", "np.fft.rfft(np.ones(3) * 1j)"],
    "ihfft": ["np.fft.ihfft(np.ones(3), 0)", "np.fft.ihfft(np.ones(3) * 1j)"],
    "batch_norm": ["npx.batch_norm(np.ones((2, 3)), np.ones(3), np.ones(2), np.ones(3), np.ones(3))"],
    "layer_norm": ["npx.layer_norm(np.ones((2, 3)), np.ones(2), np.ones(3))"],
    "rms_norm": ["npx.rms_norm(np.ones((2, 3)), np.ones(2))"],
    "instance_norm": ["npx.instance_norm(np.ones((2, 3, 4)), np.ones(4), np.ones(3))"],
    "l2_normalization": ["npx.l2_normalization(np.ones(2), mode='channel')"],
    "softmax": [
        "npx.softmax(np.ones((2, 3)), np.array([1, 2, 3]), use_length=True)",
        "npx.softmax(np.ones((2, 3)), dtype='int32')",
    ],
    "log_softmax": [
        "npx.log_softmax(np.ones((2, 3)), length=np.array([1, 2, 3]), use_length=True)",
        "npx.log_softmax(np.ones((2, 3)), dtype='int32')",
    ],
    "masked_softmax": ["npx.masked_softmax(np.ones((2, 3)), np.ones(2))"],
    "masked_log_softmax": ["npx.masked_log_softmax(np.ones((2, 3)), np.ones(2))"],
    "leaky_relu": [
        "npx.leaky_relu(np.ones(2), act_type='prelu')",
        "npx.leaky_relu(np.ones((2, 3)), np.ones(2), act_type='prelu')",
    ],
    "uniform": ["np.random.uniform(0, float('inf'))"],
    "zeros": ["np.zeros(-1)"],
    "ones": ["np.ones(-1)"],
    "empty": ["np.empty(-1)"],
    "zeros_like": ["np.zeros_like(np.ones(2), shape=(-1,))"],
    "ones_like": ["np.ones_like(np.ones(2), shape=(-1,))"],
    "empty_like": ["np.empty_like(np.ones(2), shape=(-1,))"],
    "full": ["np.full(-1, 0)", "np.full(2, np.ones(3))", "np.full(2, None, dtype='int32')"],
    "full_like": ["np.full_like(np.ones(2), 0, shape=(-1,))", "np.full_like(np.ones(2), np.ones(3))"],
    "eye": ["np.eye(-1)"],
    "identity": ["np.identity(-1)"],
    "tile": ["np.tile(np.ones(2), -1)"],
    "rot90": ["np.rot90(np.ones(2))", "np.rot90(np.ones((2, 2)), 1, (0, 0))"],
    "scaled_dot_product_attention": [
        "npx.scaled_dot_product_attention(np.ones((2, 3)), np.ones((2, 4)), np.ones((2, 3)))"
    ],
    "roi_align": [
        "npx.roi_align(np.ones((1, 1, 4, 4)), np.ones((1, 4)), (2, 2), 1.0)",
        "npx.roi_align(np.ones((1, 1, 4, 4)), np.array([[1, 0, 0, 2, 2]]), (2, 2), 1.0).asnumpy()",
    ],
    "sldwin_atten_score": [
        "npx.sldwin_atten_score(np.ones((1, 3, 2, 1)), np.ones((1, 2, 2, 1)), np.array([1, 1]), 1, True)"
    ],
    "sldwin_atten_context": [
        "npx.sldwin_atten_context(np.ones((1, 3, 2, 2)), np.ones((1, 3, 2, 1)), np.array([1, 1]), 1, True)"
    ],
    "norm": ["np.linalg.norm(np.ones((2, 2, 2)), 2)", "np.linalg.norm(np.ones(2), 'fro')"],
    "matrix_norm": [
        "np.linalg.matrix_norm(np.ones((2, 2)), ord=3)",
        "np.linalg.matrix_norm(np.ones((2, 2)), axis=(1,))",
    ],
    "matrix_rank": [
        "np.linalg.matrix_rank(np.ones((3, 3)) * np.nan)",
        "np.linalg.matrix_rank(np.ones((2, 2)), 1.0, rtol=1.0)",
    ],
    "lstsq": ["np.linalg.lstsq(np.ones((2, 2)), np.ones(3))", "np.linalg.lstsq(np.full((2, 2), np.inf), np.ones(2))"],
    "batch_dot": ["npx.batch_dot(np.ones((2, 3)), np.ones((3, 2)))"],
    "box_iou": ["npx.box_iou(np.ones((2, 4)), np.ones((2, 3)))"],
    "calibrate_entropy": ["npx.contrib_calibrate_entropy(np.ones(4), np.ones(5), num_quantized_bins=3)"],
    "box_nms": ["npx.box_nms(np.ones((2, 6)), score_index=6)"],
    "sequence_mask": [
        "npx.sequence_mask(np.ones((2, 3)), np.ones(2), True)",
        "npx.sequence_mask(np.ones((2, 3)), None, True)",
    ],
    "ctc_loss": [
        "npx.ctc_loss(np.ones((2, 3)), np.ones((1, 1)))",
        "npx.ctc_loss(np.ones((2, 1, 3)), np.ones((1, 1)), None, None, True)",
    ],
    "sequence_last": ["npx.sequence_last(np.ones((2, 3)), np.ones(2), True)"],
    "sequence_reverse": ["npx.sequence_reverse(np.ones((2, 3)), np.ones(2), True)"],
    "slice_like": ["npx.slice_like(np.ones(2), np.ones(3))", "npx.slice_like(np.ones(2), np.ones((2, 2)))"],
    "broadcast_like": [
        "npx.broadcast_like(np.ones(2), np.ones(3))",
        "npx.broadcast_like(np.ones(1), np.ones(3), (0,), ())",
    ],
    "reshape_like": ["npx.reshape_like(np.ones(2), np.ones(3))"],
    "arange_like": ["npx.arange_like(np.ones(2), repeat=0)"],
    "batch_flatten": ["npx.batch_flatten(np.array(1.0))"],
    "power": ["np.power(np.array([2]), np.array([-1]))"],
    "where": ["np.where([True], 1)", "np.where([True, False], [1, 2, 3], 0)"],
    "arange": ["np.arange(0, 5, 0)", "np.arange(300, 303, dtype='uint8')", "np.arange(2**70)"],
    "linspace": ["np.linspace(0, 1, -1)"],
    "unstack": ["np.unstack(np.array(3))"],
    "astype": ["np.array([1.5]).astype('int64', casting='safe')"],
    "reshape": ["np.reshape(np.ones(3), (2, 2))"],
    "broadcast_to": ["np.broadcast_to(np.ones(3), (2,))"],
    "squeeze": ["np.squeeze(np.ones((1, 2)), 1)"],
    "matrix_transpose": ["np.matrix_transpose(np.ones(3))"],
    "fliplr": ["np.fliplr(np.ones(3))"],
    "flipud": ["np.flipud(np.array(1.0))"],
    "concatenate": ["np.concatenate([])", "np.concatenate([np.ones((2, 3)), np.ones((2, 4))])"],
    "stack": ["np.stack([])", "np.stack([np.ones(2), np.ones(3)])"],
    "vstack": ["np.vstack([np.ones(2), np.ones(3)])"],
    "hstack": ["np.hstack([np.ones((2, 1)), np.ones((3, 1))])"],
    "dstack": ["np.dstack([np.ones(2), np.ones(3)])"],
    "column_stack": ["np.column_stack([np.ones(2), np.ones(3)])"],
    "split": ["np.split(np.ones(5), 2)", "np.split(np.ones(5), 0)"],
    "repeat": ["np.repeat(np.ones(2), -1)", "np.repeat(np.ones(2), [1, 2, 3])"],
    "max": ["np.max(np.ones(0))"],
    "min": ["np.min(np.ones(0))"],
    "ptp": ["np.ptp(np.ones(0))"],
    "cumulative_sum": ["np.cumulative_sum(np.ones((2, 2)))"],
    "cumulative_prod": ["np.cumulative_prod(np.ones((2, 2)))"],
    "take_along_axis": ["np.take_along_axis(np.ones(2), np.array([2]), 0)"],
    "take": ["np.take(np.ones(2), 2)"],
    "diagonal": ["np.diagonal(np.ones(2))"],
    "diag": ["np.diag(np.ones((2, 2, 2)))", "np.diag(np.array(1.0))"],
    "trace": ["np.trace(np.ones(2))"],
    "argmax": ["np.argmax(np.ones(0))"],
    "argmin": ["np.argmin(np.ones(0))"],
    "bincount": ["np.bincount(np.array([0.5]))", "np.bincount(np.array([0, 1]), np.ones(3))", "np.bincount([-1])"],
    "packbits": ["np.packbits([0.5])"],
    "unpackbits": ["np.unpackbits([0.5])", "np.unpackbits(np.zeros(1, dtype='uint8'), count=-9)"],
    "vander": ["np.vander([[1.0]])", "np.vander([1.0], -1)"],
    "ravel_multi_index": ["np.ravel_multi_index(([2], [0]), (2, 3))"],
    "unravel_index": ["np.unravel_index([6], (2, 3))", "np.unravel_index([0.5], (2, 3))"],
    "resize": ["np.resize(np.ones(2), -1)"],
    "choose": ["np.choose([2], [[1], [2]])", "np.choose([0], [])", "np.choose([0.5], [[1]])"],
    "digitize": ["np.digitize([1.0], [1.0, 0.0, 1.0])", "np.digitize([1j], [0.0])"],
    "lexsort": ["np.lexsort([])", "np.lexsort([np.ones(2), np.ones(3)])"],
    "ediff1d": ["np.ediff1d([1, 2], to_end=0.5)"],
    "interp": ["np.interp(1.0, [], [])", "np.interp(1.0, [1.0], [1.0, 2.0])", "np.interp(1, [1], [1], period=0)"],
    "matmul": ["np.matmul(np.ones((2, 3)), np.ones((2, 3)))", "np.matmul(np.ones(2), 1.0)"],
    "dot": ["np.dot(np.ones(2), np.ones(3))"],
    "inner": ["np.inner(np.ones(2), np.ones(3))"],
    "vdot": ["np.vdot(np.ones(2), np.ones(3))"],
    "matvec": ["np.matvec(np.ones((2, 3)), np.ones(2))"],
    "vecmat": ["np.vecmat(np.ones(3), np.ones((2, 3)))"],
    "multinomial": ["np.random.multinomial(-1, [1.0])", "np.random.multinomial(3, [0.7, 0.7, 0.1])"],
    "multi_dot": ["np.linalg.multi_dot([np.eye(2)])", "np.linalg.multi_dot([np.eye(2), np.eye(3)])"],
    "matrix_power": ["np.linalg.matrix_power(np.ones((2, 3)), 2)", "np.linalg.matrix_power(np.zeros((2, 2)), -1)"],
    "inv": ["np.linalg.inv(np.ones((2, 3)))", "np.linalg.inv(np.zeros((2, 2)))"],
    "solve": [
        "np.linalg.solve(np.ones((2, 3)), np.ones(2))",
        "np.linalg.solve(np.eye(2), np.ones(3))",
        "np.linalg.solve(np.zeros((2, 2)), np.ones(2))",
    ],
    "cholesky": ["np.linalg.cholesky(np.ones((2, 3)))", "np.linalg.cholesky(-np.eye(2))"],
    "det": ["np.linalg.det(np.ones((2, 3)))"],
    "svdvals": ["np.linalg.svdvals(np.full((2, 2), np.nan))"],
    "eigvalsh": ["np.linalg.eigvalsh(np.ones((2, 3)))", "np.linalg.eigvalsh(np.full((3, 3), np.nan))"],
    "eigvals": ["np.linalg.eigvals(np.ones((2, 3)))", "np.linalg.eigvals(np.full((2, 2), np.inf))"],
    **{name: [f"np.fft.{name}(np.ones(4), 0)"] for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")},
    **{
        name: [
            f"np.fft.{name}(np.ones((4, 4)), s=(2, 2), axes=(0,))",
            f"np.fft.{name}(np.ones((4, 4)), s=(2, 0), axes=(0, 1))",
        ]
        for name in ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn")
    },
    **{
        name: [f"np.fft.{name}(-1)", f"np.fft.{name}(0)", f"np.fft.{name}(4, dtype='int64')"]
        for name in ("fftfreq", "rfftfreq")
    },
    "diff": ["np.diff(np.ones(3), -1)", "np.diff(np.array(1.0))"],
    "trapezoid": ["np.trapezoid(np.ones(3), axis=1)", "np.trapezoid(np.ones(3), np.ones(5))"],
    "convolve": ["np.convolve([], [1.0])"],
    "correlate": ["np.correlate([1.0], [])"],
    "fully_connected": ["npx.fully_connected(np.ones((2, 3)), np.ones((4, 2)))"],
    "convolution": ["npx.convolution(np.ones((1, 2, 5)), np.ones((1, 3, 3)), kernel=(3,), num_filter=1, no_bias=True)"],
    "deconvolution": [
        "npx.deconvolution(np.ones((1, 2, 5)), np.ones((3, 1, 3)), kernel=(3,), num_filter=1, no_bias=True)"
    ],
    "pooling": ["npx.pooling(np.ones((1, 2, 5)), kernel=(6,))"],
    "group_norm": [
        "npx.group_norm(np.ones((2, 3)), np.ones(2), np.ones(3))",
        "npx.group_norm(np.ones((1, 3, 2)), np.ones(3), np.zeros(3), num_groups=2)",
    ],
    "dropout": ["npx.dropout(np.ones(3), 1.5)"],
    "rnn": [
        "npx.rnn(np.ones((2, 1, 1)), np.ones(3), np.zeros((1, 1, 1)), mode='rnn_tanh', state_size=1, num_layers=1)",
        "npx.rnn(np.ones((2, 1, 1)), np.ones(4), np.zeros((1, 1, 1)))",
    ],
    **{
        name: [f"npx.{name}([np.ones(2)], [np.ones(3)], {states} lrs=[0.1])"]
        for name, states in {
            "sgd_update": "",
            "nag_update": "[np.ones(2)],",
            "adam_update": "[np.ones(2)], [np.ones(2)],",
            "adamw_update": "[np.ones(2)], [np.ones(2)],",
            "rmsprop_update": "[np.ones(2)],",
            "adagrad_update": "[np.ones(2)],",
        }.items()
    },
    "choice": [
        "np.random.choice(3, size=4, replace=False)",
        "np.random.choice(3, p=[0.5, 0.5])",
        "np.random.choice(2, p=[0.5, 0.6])",
    ],
    "beta": ["np.random.beta(-1.0, 1.0)"],
    "binomial": ["np.random.binomial(5, 1.5)", "np.random.binomial(-1, 0.5)"],
    "chisquare": ["np.random.chisquare(-1.0)"],
    "dirichlet": ["np.random.dirichlet([1.0, -1.0])"],
    "exponential": ["np.random.exponential(-1.0)"],
    "f": ["np.random.f(-1.0, 1.0)"],
    "gamma": ["np.random.gamma(-1.0)"],
    "geometric": ["np.random.geometric(1.5)"],
    "gumbel": ["np.random.gumbel(0.0, -1.0)"],
    "hypergeometric": ["np.random.hypergeometric(-1, 1, 1)"],
    "laplace": ["np.random.laplace(0.0, -1.0)"],
    "logistic": ["np.random.logistic(0.0, -1.0)"],
    "lognormal": ["np.random.lognormal(0.0, -1.0)"],
    "logseries": ["np.random.logseries(1.5)"],
    "negative_binomial": ["np.random.negative_binomial(5, 1.5)"],
    "noncentral_chisquare": ["np.random.noncentral_chisquare(-1.0, 1.0)"],
    "noncentral_f": ["np.random.noncentral_f(-1.0, 1.0, 1.0)"],
    "normal": ["np.random.normal(0.0, -1.0)"],
    "pareto": ["np.random.pareto(-1.0)"],
    "permutation": ["np.random.permutation(2.5)"],
    "roll": ["np.roll(np.ones((2, 2)), (1, 2, 3), (0, 1))"],
    "poisson": ["np.random.poisson(-1.0)"],
    "random_power": ["np.random.power(-1.0)"],
    "randint": ["np.random.randint(3, 3)"],
    "rayleigh": ["np.random.rayleigh(-1.0)"],
    "standard_gamma": ["np.random.standard_gamma(-1.0)"],
    "standard_t": ["np.random.standard_t(-1.0)"],
    "triangular": ["np.random.triangular(1.0, 0.0, 2.0)"],
    "vonmises": ["np.random.vonmises(0.0, -1.0)"],
    "wald": ["np.random.wald(-1.0, 1.0)"],
    "weibull": ["np.random.weibull(-1.0)"],
    "zipf": ["np.random.zipf(0.5)"],
}
# Made from what entries have in common; `test_sections.py` and the standard tests look at these.
DERIVED = ("AxisError", "not one of these strings", "If the shapes do not broadcast.", "has no loop for the operands")
CLASSES = {
    "ValueError": ValueError,
    "TypeError": TypeError,
    "IndexError": IndexError,
    "LinAlgError": np.linalg.LinAlgError,
    "OverflowError": OverflowError,
    "ZeroDivisionError": ZeroDivisionError,
}
OPERATORS = [operator["name"] for operator in _core.registry() if operator["surface"]]


def claims(name):
    """`(class, condition)` of the entry's own part of the Raises section."""
    doc = inspect.getdoc(_core.namespaces["op"][name])
    body = re.search(r"^Raises\n------\n(.*?)(?=\n\n[A-Z]\w+\n---|\Z)", doc, re.MULTILINE | re.DOTALL)
    found = re.findall(r"^(\w+)\n    (.*)", body[1], re.MULTILINE) if body else []
    return [claim for claim in found if not any(words in " ".join(claim) for words in DERIVED)]


@pytest.mark.parametrize("name", OPERATORS)
def test_every_claim_has_a_call(name):
    assert bool(claims(name)) <= (name in CALLS), claims(name)


@pytest.mark.parametrize(("name", "call"), [(name, call) for name, calls in CALLS.items() for call in calls])
def test_claim_holds(name, call):
    allowed = tuple(CLASSES[kind] for kind, _ in claims(name))
    assert allowed, f"{name} says nothing of what {call} raises"

    def run():
        eval(call, {"np": np, "npx": npx})
        mxnet.waitall()

    with pytest.raises(allowed):
        run()


OUT_OF_RANGE = "If a parameter is out of its range."
METHODS = [
    name
    for name, method in inspect.getmembers(np.random.Generator, inspect.isroutine)
    if OUT_OF_RANGE in (inspect.getdoc(method) or "")
]


@pytest.mark.parametrize("name", METHODS)
def test_methods_of_generators_raise_what_the_functions_do(name):
    for call in CALLS["random_power" if name == "power" else name]:
        with pytest.raises(ValueError):
            eval(call, {"np": Draws()})


class Draws:
    """`np.random` as the methods of one generator."""

    @property
    def random(self):
        return np.random.default_rng(1)


def test_enough_methods_are_looked_at():
    assert len(METHODS) > 25
