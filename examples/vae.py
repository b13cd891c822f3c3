"""A variational autoencoder that draws digits.

    python examples/vae.py --epochs 40

The encoder gives a normal distribution of two numbers for each image, the decoder draws an image from two numbers. The
loss is minus the evidence lower bound. Source: D. P. Kingma and M. Welling, "Auto-Encoding Variational Bayes", 2014.
"""

import argparse

from _digits import digits

import mxnet as mx
from mxnet import autograd, gluon, np, npx
from mxnet.gluon import nn
from mxnet.gluon import probability as mgp
from mxnet.gluon.data import ArrayDataset, DataLoader


class VAE(gluon.HybridBlock):
    """Images (n, 64) to the negative evidence lower bound of each."""

    def __init__(self, latent: int, hidden: int) -> None:
        super().__init__()
        self.encoder = nn.HybridSequential()
        self.encoder.add(nn.Dense(hidden, activation="relu"), nn.Dense(2 * latent))
        self.decoder = nn.HybridSequential()
        self.decoder.add(nn.Dense(hidden, activation="relu"), nn.Dense(64))

    def forward(self, x):
        mean, raw = np.split(self.encoder(x), 2, axis=1)
        code = mgp.Normal(mean, npx.activation(raw, "softrelu") + 1e-4)
        prior = mgp.Normal(np.zeros_like(mean), np.ones_like(mean))
        # The sample carries gradients to mean and scale.
        pixels = mgp.Bernoulli(logit=self.decoder(code.sample()))
        return mgp.kl_divergence(code, prior).sum(axis=1) - pixels.log_prob(x).sum(axis=1)


def main(arguments: list[str] | None = None) -> tuple[float, float]:
    """Train, draw, and return the loss in the beginning and in the end."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--latent", type=int, default=8)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)

    mx.random.seed(options.seed)
    images, _ = digits(True)
    # Black or white pixels, as the Bernoulli distribution has them.
    images = (images.reshape(-1, 64) > 0.5).astype("float32")
    loader = DataLoader(ArrayDataset(images), 64, shuffle=True)
    net = VAE(options.latent, options.hidden)
    net.initialize(mx.init.Xavier())
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 3e-3})
    losses = []
    for epoch in range(options.epochs):
        total = 0.0
        for batch in loader:
            with autograd.record():
                loss = net(batch).mean()
            loss.backward()
            trainer.step(1)
            total += loss.item() / len(loader)
        losses.append(total)
        print(f"epoch {epoch + 1:3}  loss {total:.3f} nats", flush=True)
    drawn = npx.sigmoid(net.decoder(np.random.normal(size=(4, options.latent)))).reshape(4, 8, 8).asnumpy()
    for row in range(8):
        print("   ".join("".join(" .:*#"[min(int(5 * pixel), 4)] for pixel in image[row]) for image in drawn))
    return losses[0], losses[-1]


if __name__ == "__main__":
    main()
