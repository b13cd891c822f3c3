"""Programs that tests run in several ways: writes in place, and training steps of four networks."""

import numpy

import mxnet as mx
from mxnet import autograd, gluon, np, npx
from mxnet.gluon import nn, rnn


def target():
    return np.array(numpy.arange(12.0).reshape(3, 4)[::-1] % 7)


def flat(x):
    x.flat[2:7] = np.array([5.0, 6.0])


def masked(x):
    x[x > 3] = -x[x > 3]


def through_view(x):
    x.T[1][::2] = 9


WRITES = {
    "element": lambda x: x.__setitem__((1, 2), 7.5),
    "slice": lambda x: x.__setitem__(slice(None, 2), 3),
    "row": lambda x: x.__setitem__(1, np.arange(4)),
    "row of a list": lambda x: x.__setitem__(1, [1, 2, 3, 4]),
    "own row": lambda x: x.__setitem__(slice(1, 3), x[:2]),
    "element of the array": lambda x: x.__setitem__((0, 0), x[2, 1]),
    "index array": lambda x: x.__setitem__(np.array([2, 0]), np.ones((2, 4))),
    "index arrays": lambda x: x.__setitem__((np.array([2, 0]), np.array([1, 3])), 8),
    "mask": masked,
    "mask, number": lambda x: x.__setitem__(x > 2, 0),
    "view": through_view,
    "flat": flat,
    "fill": lambda x: x.fill(2.5),
    "sort": lambda x: x.sort(),
    "sort, first axis": lambda x: x.sort(axis=0),
    "partition": lambda x: x.partition(2),
    "put": lambda x: x.put([1, 3, 5], [8, 9]),
    "np.put": lambda x: np.put(x, np.array([1, 3]), np.array([4.0, 5.0])),
    "put_along_axis": lambda x: np.put_along_axis(x, np.array([[1], [0], [2]]), 7, 1),
    "place": lambda x: np.place(x, x > 3, [1, 2]),
    "putmask": lambda x: np.putmask(x, x > 3, [1, 2]),
    "copyto": lambda x: np.copyto(x, np.arange(4)),
    "copyto, number": lambda x: np.copyto(x, 4.5),
    "copyto, mask": lambda x: np.copyto(x, 4.5, where=x > 3),
    "fill_diagonal": lambda x: np.fill_diagonal(x, 6),
    "shuffle": lambda x: np.random.shuffle(x),
    "Generator.shuffle": lambda x: np.random.default_rng(1).shuffle(x),
    "Generator.permuted": lambda x: np.random.default_rng(1).permuted(x, out=x),
    "Generator.random": lambda x: np.random.default_rng(1).random(out=x),
    "+=": lambda x: x.__iadd__(np.arange(4)),
    "out": lambda x: np.exp(x, out=x),
    "out of a view": lambda x: np.exp(x.T, out=x.T),
    "out of another layout": lambda x: np.matmul(np.ones((4, 3)), np.ones((3, 3)), out=x.T),
    "out of a composite": lambda x: np.clip(x.T, 1, 3, out=x.T),
    "add.at": lambda x: np.add.at(x, np.array([0, 0, 2]), 2),
    "real": lambda x: x.real.__setitem__(0, 5),
}


class Attention(gluon.HybridBlock):
    """One head over a sequence, a norm and a classifier."""

    def __init__(self):
        super().__init__()
        self.project = nn.Dense(24, flatten=False)
        self.norm = nn.LayerNorm()
        self.classify = nn.Dense(3)

    def forward(self, x):
        q, k, v = np.split(self.project(x), 3, axis=-1)
        weights = npx.softmax(np.matmul(q, np.swapaxes(k, 1, 2)) / 8**0.5, axis=-1)
        return self.classify(self.norm(np.matmul(weights, v) + x))


def mlp():
    net = nn.HybridSequential()
    net.add(nn.Dense(16, activation="relu"), nn.Dropout(0.3), nn.Dense(3))
    return net, (6, 8)


def convolutional():
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3), nn.BatchNorm(), nn.Activation("relu"), nn.MaxPool2D(), nn.Dropout(0.3), nn.Dense(3))
    return net, (6, 2, 8, 8)


def recurrent():
    net = nn.HybridSequential()
    net.add(rnn.LSTM(8, layout="NTC"), nn.Dense(3))
    return net, (6, 5, 4)


def attentive():
    return Attention(), (6, 5, 8)


def trained(build, optimizer):
    """Losses, parameters, gradients and states of the optimizer after some steps."""
    mx.random.seed(7)
    net, shape = build()
    net.initialize()
    x, labels = np.random.normal(0, 1, shape), np.array([0, 1, 2, 0, 1, 2])
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    options = {"learning_rate": 0.05, **({"momentum": 0.9} if optimizer == "sgd" else {})}
    trainer = gluon.Trainer(net.collect_params(), optimizer, options)
    losses = []
    for _ in range(3):
        with autograd.record():
            value = loss(net(x), labels)
        value.backward()
        trainer.step(6)
        losses.append(value)
    parameters = list(net.collect_params().values())
    return losses, [p.data() for p in parameters], [p.grad() for p in parameters if p.grad_req != "null"]


NETWORKS = [mlp, convolutional, recurrent, attentive]
