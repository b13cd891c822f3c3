"""Training steps and single predictions of five networks, and elementwise functions, compiled and not.

Our columns: the whole step as one compiled function (of predictions: the hybridized network), eager, and hybridized.
The others: PyTorch as it is, `torch.compile` (with `--inductor`: it takes up to a minute for each network), ONNX
Runtime, numexpr. Names of cases as arguments choose some.

All sides start from the same weights; the losses of some steps are compared before anything is timed.
"""

import copy
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import numpy
from _sides import OURS, THREADS, Table, check_equal, time_in_turns, torch

import mxnet as mx
from mxnet import autograd, gluon, np, npx
from mxnet.gluon import nn, rnn

RATE = 0.01
EAGER, HYBRID = "eager", "hybridized"


def mlp() -> tuple[Any, Any, tuple[int, ...]]:
    net = nn.HybridSequential()
    net.add(nn.Dense(512, activation="relu"), nn.Dense(512, activation="relu"), nn.Dense(10))
    layers = torch and torch.nn
    other = torch and layers.Sequential(
        layers.Linear(784, 512), layers.ReLU(), layers.Linear(512, 512), layers.ReLU(), layers.Linear(512, 10)
    )
    return net, other, (128, 784)


def lenet() -> tuple[Any, Any, tuple[int, ...]]:
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(20, 5, activation="relu"),
        nn.MaxPool2D(2, 2),
        nn.Conv2D(50, 5, activation="relu"),
        nn.MaxPool2D(2, 2),
        nn.Flatten(),
        nn.Dense(500, activation="relu"),
        nn.Dense(10),
    )
    layers = torch and torch.nn
    other = torch and layers.Sequential(
        layers.Conv2d(1, 20, 5),
        layers.ReLU(),
        layers.MaxPool2d(2),
        layers.Conv2d(20, 50, 5),
        layers.ReLU(),
        layers.MaxPool2d(2),
        layers.Flatten(),
        layers.Linear(800, 500),
        layers.ReLU(),
        layers.Linear(500, 10),
    )
    return net, other, (128, 1, 28, 28)


class Attention(gluon.HybridBlock):
    """A layer of a transformer, norms first."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(in_channels=width), nn.LayerNorm(in_channels=width)
        self.project = nn.Dense(3 * width, flatten=False, in_units=width)
        self.out = nn.Dense(width, flatten=False, in_units=width)
        self.wide = nn.Dense(4 * width, flatten=False, in_units=width)
        self.narrow = nn.Dense(width, flatten=False, in_units=4 * width)

    def forward(self, x: Any) -> Any:
        batch, length, width = x.shape
        parts = self.project(self.first(x)).reshape(batch, length, 3, self.heads, width // self.heads)
        q, k, v = (parts[:, :, i].transpose(0, 2, 1, 3) for i in range(3))
        weights = npx.softmax(np.matmul(q, k.swapaxes(2, 3)) * (width // self.heads) ** -0.5, axis=-1)
        mixed = np.matmul(weights, v).transpose(0, 2, 1, 3).reshape(batch, length, width)
        x = x + self.out(mixed)
        return x + self.narrow(npx.gelu(self.wide(self.second(x))))


def transformer() -> tuple[Any, Any, tuple[int, ...]]:
    width, heads, depth = 128, 4, 4
    net = nn.HybridSequential()
    for _ in range(depth):
        net.add(Attention(width, heads))
    net.add(nn.Dense(10))
    other = None
    if torch is not None:
        layers = torch.nn

        class Layer(layers.Module):  # type: ignore[misc, name-defined]
            """The same layer."""

            def __init__(self) -> None:
                super().__init__()
                self.first, self.second = layers.LayerNorm(width), layers.LayerNorm(width)
                self.project, self.out = layers.Linear(width, 3 * width), layers.Linear(width, width)
                self.wide, self.narrow = layers.Linear(width, 4 * width), layers.Linear(4 * width, width)

            def forward(self, x: Any) -> Any:
                batch, length, _ = x.shape
                parts = self.project(self.first(x)).reshape(batch, length, 3, heads, width // heads)
                q, k, v = (parts[:, :, i].transpose(1, 2) for i in range(3))
                mixed = layers.functional.scaled_dot_product_attention(q, k, v)
                x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
                return x + self.narrow(layers.functional.gelu(self.wide(self.second(x))))

        other = layers.Sequential(*[Layer() for _ in range(depth)], layers.Flatten(), layers.Linear(64 * width, 10))
    return net, other, (16, 64, width)


class Recurrent(gluon.HybridBlock):
    """Two LSTM layers and a classifier of the last step."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = rnn.LSTM(128, 2, layout="NTC", input_size=64)
        self.classify = nn.Dense(10, in_units=128)

    def forward(self, x: Any) -> Any:
        return self.classify(self.lstm(x)[:, -1])


def lstm() -> tuple[Any, Any, tuple[int, ...]]:
    other = None
    if torch is not None:
        layers = torch.nn

        class Layer(layers.Module):  # type: ignore[misc, name-defined]
            """The same network."""

            def __init__(self) -> None:
                super().__init__()
                self.lstm, self.classify = layers.LSTM(64, 128, 2, batch_first=True), layers.Linear(128, 10)

            def forward(self, x: Any) -> Any:
                return self.classify(self.lstm(x)[0][:, -1])

        other = Layer()
    return Recurrent(), other, (32, 32, 64)


def resnet() -> tuple[Any, Any, tuple[int, ...]]:
    other = None
    if torch is not None:
        layers = torch.nn

        class Unit(layers.Module):  # type: ignore[misc, name-defined]
            """Two convolutions beside a shortcut."""

            def __init__(self, channels: int, width: int, stride: int) -> None:
                super().__init__()
                self.body = layers.Sequential(
                    layers.Conv2d(channels, width, 3, stride, 1, bias=False),
                    layers.BatchNorm2d(width),
                    layers.ReLU(),
                    layers.Conv2d(width, width, 3, 1, 1, bias=False),
                    layers.BatchNorm2d(width),
                )
                self.shortcut = layers.Identity()
                if stride > 1:
                    self.shortcut = layers.Sequential(
                        layers.Conv2d(channels, width, 1, stride, bias=False), layers.BatchNorm2d(width)
                    )

            def forward(self, x: Any) -> Any:
                return torch.relu(self.body(x) + self.shortcut(x))

        units = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2)]
        other = layers.Sequential(
            layers.Conv2d(3, 64, 7, 2, 3, bias=False),
            layers.BatchNorm2d(64),
            layers.ReLU(),
            layers.MaxPool2d(3, 2, 1),
            *[Unit(*sizes) for sizes in [*units, (512, 512, 1)]],
            layers.AdaptiveAvgPool2d(1),
            layers.Flatten(),
            layers.Linear(512, 10),
        )
    return gluon.model_zoo.vision.resnet18_v1(classes=10), other, (32, 3, 32, 32)


# Networks whose parameters the libraries keep in another order or number: speed is compared, losses are not.
OTHER_ORDER = (lstm, resnet)


def onnx_session(net: Any, x: numpy.ndarray) -> Any:
    """The network, exported, in ONNX Runtime; None if that or `onnx` cannot be imported."""
    try:
        import onnxruntime

        with tempfile.TemporaryDirectory() as folder:
            path = mx.onnx.export_model(net, None, [x.shape], x.dtype, f"{folder}/net.onnx")
            session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    except ImportError:
        return None
    name = session.get_inputs()[0].name
    return lambda: session.run(None, {name: x})


def same_weights(net: Any, other: Any) -> None:
    ours = [parameter.data().asnumpy() for parameter in net.collect_params().values()]
    theirs = list(other.parameters())
    assert [x.shape for x in ours] == [tuple(x.shape) for x in theirs]
    with torch.no_grad():
        for mine, parameter in zip(ours, theirs, strict=True):
            parameter.copy_(torch.from_numpy(mine.copy()))


def our_step(net: Any, x: Any, labels: Any) -> Callable[[], Any]:
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": RATE})
    measure = gluon.loss.SoftmaxCrossEntropyLoss()

    def step(x: Any, labels: Any) -> Any:
        with autograd.record():
            loss = measure(net(x), labels)
        loss.backward()
        trainer.step(x.shape[0])
        return loss

    return step


def torch_step(net: Any, x: numpy.ndarray, labels: numpy.ndarray, compiled: bool = False) -> Callable[[], Any]:
    data, target = torch.from_numpy(x), torch.from_numpy(labels)
    optimizer = torch.optim.SGD(net.parameters(), lr=RATE)
    if compiled:
        net = torch.compile(net)

    def step() -> Any:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(data), target)
        loss.backward()
        optimizer.step()
        return loss

    return step


def is_chosen(name: str) -> bool:
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    return not words or any(word in name for word in words)


def chain(x: Any, y: Any) -> Any:
    """Ten elementwise operators that every side has."""
    return abs((x * y + x - y) * (x - 0.5) / (y * y + 1.5) + x)


def mean_of_chain(x: Any, y: Any) -> Any:
    return chain(x, y).mean()


def squared_error(x: Any, y: Any) -> Any:
    return ((x - y) * (x - y)).mean()


CHAIN_TEXT = "abs((x * y + x - y) * (x - 0.5) / (y * y + 1.5) + x)"
# Function and numexpr's text; numexpr has no mean.
ELEMENTWISE: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "chain of 10": (chain, CHAIN_TEXT),
    "mean of chain of 10": (mean_of_chain, f"sum({CHAIN_TEXT})"),
    "mean squared error": (squared_error, "sum((x - y) * (x - y))"),
}


def elementwise(name: str) -> dict[str, Callable[[], Any]]:
    """A function of two arrays of 10^7 elements, eager and compiled, in numexpr, NumPy, PyTorch and `torch.compile`."""
    function, text = ELEMENTWISE[name]
    generator = numpy.random.default_rng(0)
    x, y = (generator.normal(0, 1, 10_000_000).astype("float32") for _ in range(2))
    ours, compiled = (np.array(x), np.array(y)), mx.jit(function)
    sides: dict[str, Callable[[], Any]] = {OURS: lambda: compiled(*ours), EAGER: lambda: function(*ours)}
    try:
        import numexpr
    except ImportError:
        pass
    else:
        numexpr.set_num_threads(THREADS)
        single = {"x": x, "y": y}
        sides["numexpr"] = lambda: numexpr.evaluate(text, local_dict=single)
    sides["NumPy"] = lambda: function(x, y)
    if torch is not None:
        theirs = torch.from_numpy(x), torch.from_numpy(y)
        sides["PyTorch"] = lambda: function(*theirs)
        if "--inductor" in sys.argv:
            fused = torch.compile(function)
            sides["inductor"] = lambda: fused(*theirs)
    # numexpr's sums are sums, not means, and lose digits: it adds one number after the other.
    is_mean = text.startswith("sum")
    compared = {side: run for side, run in sides.items() if side != "numexpr" or not is_mean}
    # Ten roundings to float32 without a sum; means of 10^7 numbers differ by the order of addition.
    check_equal(name, compared, 1e-4 if is_mean else 1e-6)
    # The eager side is ours, too, and has to be waited for.
    eager = sides[EAGER]

    def waited() -> None:
        eager()
        mx.waitall()

    return {**sides, EAGER: waited}


def main() -> None:
    generator = numpy.random.default_rng(0)
    table = Table("elementwise, 10^7 float32", [OURS, EAGER, "numexpr", "NumPy", "PyTorch", "inductor"])
    for name in filter(is_chosen, ELEMENTWISE):
        table.line(name, time_in_turns(elementwise(name)))
    training = Table("training steps, float32, SGD, each waited for", [OURS, EAGER, HYBRID, "PyTorch", "inductor"])
    predicting = Table("one prediction, float32, each waited for", [OURS, EAGER, "PyTorch", "ONNX"])
    for build in (mlp, lenet, lstm, transformer, resnet):
        if not is_chosen(build.__name__):
            continue
        net, other, shape = build()
        x, labels = generator.normal(0, 1, shape).astype("float32"), generator.integers(0, 10, shape[0])
        data, target = np.array(x), np.array(labels)
        net.initialize(mx.init.Xavier())
        net(data)
        step = our_step(net, data, target)
        compiled = mx.jit(step)
        sides: dict[str, Callable[[], Any]] = {}
        if other is not None:
            if build not in OTHER_ORDER:
                same_weights(net, other)
            sides["PyTorch"] = torch_step(other, x, labels)
        if other is not None and build not in OTHER_ORDER:
            for turn in range(3):
                mine, theirs = float(step(data, target).mean()), float(sides["PyTorch"]().detach())
                if abs(mine - theirs) > 1e-3 * abs(theirs):
                    raise SystemExit(f"{build.__name__}: loss {mine} after {turn} steps, PyTorch's is {theirs}")

        def waited(call: Callable[..., Any], *arguments: Any) -> Callable[[], None]:
            def run() -> None:
                call(*arguments)
                mx.waitall()

            return run

        # Graphs are forgotten where a network is switched, so that each side has one of its own.
        twin = copy.deepcopy(net)
        twin.hybridize()
        sides[OURS] = waited(compiled, data, target)
        sides[EAGER] = waited(step, data, target)
        sides[HYBRID] = waited(our_step(twin, data, target), data, target)
        if other is not None and "--inductor" in sys.argv:
            sides["inductor"] = torch_step(other, x, labels, compiled=True)
        in_order = {side: sides[side] for side in training.sides if side in sides}
        training.line(build.__name__, time_in_turns(in_order, turn_s=0.05))
        one = data[:1]
        single: dict[str, Callable[[], Any]] = {
            OURS: waited(twin, one),
            EAGER: waited(net, one),
        }
        if other is not None:
            tensor = torch.from_numpy(x[:1])

            def predict(other: Any = other, tensor: Any = tensor) -> Any:
                with torch.no_grad():
                    return other(tensor)

            other.eval()
            single["PyTorch"] = predict
        if (run := onnx_session(twin, x[:1])) is not None:
            single["ONNX"] = run
        predicting.line(build.__name__, time_in_turns(single))


if __name__ == "__main__":
    main()
