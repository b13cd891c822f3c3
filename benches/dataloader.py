"""An epoch over 60,000 images of 28 x 28 bytes in memory: normalised, shuffled, in batches of 256, against PyTorch.

Both sides keep their worker processes from epoch to epoch, and start them before anything is timed. Beside batches that
are taken as a whole stand those with one Python call for each sample, which is PyTorch's way.
"""

from typing import Any

import numpy
from _sides import OURS, Case, Table, torch

from mxnet.gluon.data import ArrayDataset, DataLoader
from mxnet.gluon.data.vision import transforms

NUM_SAMPLES = 60_000
BATCH = 256
MEAN, STD = 0.13, 0.31

if torch is not None:

    class Images(torch.utils.data.Dataset):  # type: ignore[misc,name-defined]
        """The same samples, with the same arithmetic."""

        def __init__(self, images: numpy.ndarray, labels: numpy.ndarray) -> None:
            self.images, self.labels = torch.from_numpy(images), torch.from_numpy(labels)

        def __len__(self) -> int:
            return len(self.labels)

        def __getitem__(self, idx: int) -> Any:
            return (self.images[idx].permute(2, 0, 1).float() / 255.0 - MEAN) / STD, self.labels[idx]


def epoch(loader: Any) -> Case:
    """Takes every batch once, and counts the samples."""

    def run() -> int:
        num_samples = sum(len(labels) for _, labels in loader)
        if num_samples != NUM_SAMPLES:
            raise SystemExit(f"{num_samples} samples instead of {NUM_SAMPLES}")
        return num_samples

    return run


def check_equal(ours: Any, theirs: Any) -> None:
    """Compares the first batches of loaders that do not shuffle."""
    (x, labels), (y, others) = next(iter(ours)), next(iter(theirs))
    numpy.testing.assert_array_equal(labels.asnumpy(), others.numpy())
    # Three rounded float32 operations a side, on numbers up to (1 - MEAN) / STD = 2.8.
    numpy.testing.assert_allclose(x.asnumpy(), y.numpy(), atol=3 * 2.8 * 2**-23, rtol=0)


def main() -> None:
    table = Table(f"{NUM_SAMPLES} images of 28 x 28, batches of {BATCH}", [OURS, "PyTorch"])
    generator = numpy.random.default_rng(0)
    images = generator.integers(0, 256, (NUM_SAMPLES, 28, 28, 1)).astype("uint8")
    labels = generator.integers(0, 10, NUM_SAMPLES)
    steps = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
    dataset = ArrayDataset(images, labels).transform_first(steps)
    if torch is not None:
        check_equal(DataLoader(dataset, BATCH), torch.utils.data.DataLoader(Images(images, labels), BATCH))
    for num_workers in (0, 1, 2):
        options = {"num_workers": num_workers, "shuffle": True}
        theirs = {}
        if torch is not None:
            loader = torch.utils.data.DataLoader(
                Images(images, labels), BATCH, persistent_workers=num_workers > 0, **options
            )
            theirs["PyTorch"] = epoch(loader)
        for name, is_whole in (("", True), (", by sample", False)):
            ours = epoch(DataLoader(dataset, BATCH, try_nopython=is_whole, **options))
            table.add(f"workers: {num_workers}{name}", {OURS: ours, **theirs}, rtol=None, turns=5, turn_s=0.0)


if __name__ == "__main__":
    main()
