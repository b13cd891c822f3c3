"""Three graph networks that learn which side each member of a karate club takes, from two members' sides alone.

    python examples/karate_club.py --model gat

Prints the loss while it learns, and how many of the other members were told right.
"""

import argparse

import mxnet as mx
from mxnet import autograd, gluon, np, npx
from mxnet.sparse import csr_array, graph


class GraphConvolution(gluon.Block):
    """Sums of neighbours' features, scaled by both degrees (Kipf and Welling, arXiv:1609.02907)."""

    def __init__(self, in_size: int, out_size: int) -> None:
        super().__init__()
        self.linear = gluon.nn.Dense(out_size, in_units=in_size, flatten=False)

    def forward(self, g: csr_array, x):
        """Map (n, in_size) features of nodes to (n, out_size)."""
        scale = np.expand_dims(1 / np.sqrt(np.maximum(graph.in_degrees(g), 1).astype("float32")), 1)
        return scale * graph.gspmm(g, "copy_lhs", "sum", self.linear(x) * scale)


class SampleAndAggregate(gluon.Block):
    """A node's own features beside the mean of its neighbours' (Hamilton et al., arXiv:1706.02216)."""

    def __init__(self, in_size: int, out_size: int) -> None:
        super().__init__()
        self.own = gluon.nn.Dense(out_size, in_units=in_size, flatten=False)
        self.neighbours = gluon.nn.Dense(out_size, in_units=in_size, flatten=False, use_bias=False)

    def forward(self, g: csr_array, x):
        """Map (n, in_size) features of nodes to (n, out_size)."""
        return self.own(x) + self.neighbours(graph.gspmm(g, "copy_lhs", "mean", x))


class GraphAttention(gluon.Block):
    """Neighbours' features weighted by attention of several heads (Velickovic et al., arXiv:1710.10903)."""

    def __init__(self, in_size: int, out_size: int, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.linear = gluon.nn.Dense(heads * out_size, in_units=in_size, flatten=False, use_bias=False)
        self.of_source = gluon.Parameter("of_source", shape=(heads, out_size))
        self.of_destination = gluon.Parameter("of_destination", shape=(heads, out_size))

    def forward(self, g: csr_array, x):
        """Map (n, in_size) features of nodes to (n, out_size), the mean of the heads."""
        z = self.linear(x).reshape(x.shape[0], self.heads, -1)
        from_source = (z * self.of_source.data()).sum(axis=-1)
        from_destination = (z * self.of_destination.data()).sum(axis=-1)
        scores = npx.leaky_relu(graph.gsddmm(g, "add", from_source, from_destination), slope=0.2)
        weights = np.expand_dims(graph.edge_softmax(g, scores), -1)
        return graph.gspmm(g, "mul", "sum", z, weights).mean(axis=1)


MODELS = {"gcn": GraphConvolution, "sage": SampleAndAggregate, "gat": GraphAttention}


def train(model: str, steps: int = 100, hidden: int = 16) -> float:
    """Train on the two leaders' sides; the part of all members told right."""
    g, side = graph.karate_club()
    n = g.shape[0]
    # Each member is its own neighbour too, and nothing else is known of it.
    src, dst = graph.edges(g)
    loops = np.arange(n)
    g, _ = graph.from_edges(np.concatenate([src, loops]), np.concatenate([dst, loops]))
    x = np.eye(n)
    layers = [MODELS[model](n, hidden), MODELS[model](hidden, 2)]
    parameters = {}
    for i, layer in enumerate(layers):
        layer.initialize(mx.init.Xavier())
        parameters |= {f"{i}.{name}": p for name, p in layer.collect_params().items()}
    trainer = gluon.Trainer(parameters, "adam", {"learning_rate": 0.02})
    leaders = np.array([0, n - 1])
    loss_function = gluon.loss.SoftmaxCELoss()
    scores = None
    for step in range(steps):
        with autograd.record():
            scores = layers[1](g, np.tanh(layers[0](g, x)))
            loss = loss_function(scores[leaders], side[leaders]).mean()
        loss.backward()
        trainer.step(1)
        if step % 20 == 0:
            print(f"step {step:3}  loss {float(loss):.4f}")
    return float((scores.argmax(axis=1) == side).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=MODELS, default="gcn")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    mx.random.seed(options.seed)
    print(f"told right: {train(options.model, options.steps):.0%}")


if __name__ == "__main__":
    main()
