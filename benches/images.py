"""JPEG files to a network's input: reading, resizing, normalising; against Pillow, and torch if it is there.

`python benches/images.py [number of images]`. Pillow is needed. Each line is the median of several runs, for each
image. Pillow's bilinear filter widens when it shrinks an image, and so does more work than ours.
"""

import importlib.util
import io
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as onp
from PIL import Image

import mxnet as mx
from mxnet.gluon.data import DataLoader, vision

RUNS = 7
SIZE = 224
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
T = vision.transforms


def photograph(seed: int, height: int = 375, width: int = 500) -> bytes:
    """A JPEG file with structure at all scales, as large as those of ImageNet."""
    random = onp.random.RandomState(seed)
    pixels = onp.zeros((height, width, 3))
    for size in (4, 16, 64, 256):
        small = Image.fromarray(random.randint(0, 256, (size, size, 3)).astype("uint8"))
        pixels += onp.asarray(small.resize((width, height), Image.Resampling.BICUBIC)) / (2 * size**0.5)
    file = io.BytesIO()
    Image.fromarray((pixels * 255 / pixels.max()).astype("uint8")).save(file, "JPEG", quality=90)
    return file.getvalue()


def seconds(run: object) -> float:
    """Median time of a call."""
    times = []
    for _ in range(RUNS + 1):
        start = time.perf_counter()
        run()  # type: ignore[operator]
        mx.waitall()
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def pillow_arrays(files: list[bytes]) -> onp.ndarray:
    batch = []
    for data in files:
        image = Image.open(io.BytesIO(data)).convert("RGB").resize((SIZE, SIZE), Image.Resampling.BILINEAR)
        array = onp.asarray(image).astype("float32") / onp.float32(255)
        batch.append(((array - onp.float32(MEAN)) / onp.float32(STD)).transpose(2, 0, 1))
    return onp.stack(batch)


def torch_arrays(files: list[bytes]) -> object:
    import torch

    mean, std = torch.tensor(MEAN).reshape(3, 1, 1), torch.tensor(STD).reshape(3, 1, 1)
    batch = []
    for data in files:
        image = Image.open(io.BytesIO(data)).convert("RGB").resize((SIZE, SIZE), Image.Resampling.BILINEAR)
        array = torch.from_numpy(onp.array(image)).permute(2, 0, 1).float().div(255)
        batch.append((array - mean) / std)
    return torch.stack(batch)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 32
    files = [photograph(seed) for seed in range(count)]
    size = sum(map(len, files)) / count / 1e3
    print(f"{count} JPEG images of 500 x 375, {size:.0f} kB each; float32 (3, {SIZE}, {SIZE})")
    pixels = mx.image.imdecode(files[0])
    image = Image.open(io.BytesIO(files[0])).convert("RGB")
    parts = {
        "decode": (lambda: mx.image.imdecode(files[0]), lambda: onp.asarray(Image.open(io.BytesIO(files[0])))),
        "resize, bilinear": (
            lambda: mx.image.imresize(pixels, SIZE, SIZE),
            lambda: onp.asarray(image.resize((SIZE, SIZE), Image.Resampling.BILINEAR)),
        ),
        "write, quality 90": (
            lambda: mx.image._imencode(pixels, 90),
            lambda: image.save(io.BytesIO(), "JPEG", quality=90),
        ),
    }
    for name, (ours, theirs) in parts.items():
        a, b = seconds(ours), seconds(theirs)
        print(f"{name:<18} {a * 1e3:7.2f} ms, Pillow {b * 1e3:7.2f} ms, ratio {b / a:.2f}")

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "class").mkdir()
        for number, data in enumerate(files):
            (Path(folder) / "class" / f"{number:05}.jpg").write_bytes(data)
        chain = T.Compose([T.Resize((SIZE, SIZE)), T.ToTensor(), T.Normalize(MEAN, STD)])
        loader = DataLoader(vision.ImageFolderDataset(folder).transform_first(chain), count)
        sides = {"Pillow, NumPy": lambda: pillow_arrays(files)}
        if importlib.util.find_spec("torch"):
            sides["Pillow, torch"] = lambda: torch_arrays(files)
        for threads in sorted({1, os.cpu_count() or 1}):
            mx._core.set_num_threads(threads)
            ours = seconds(lambda: list(loader)) / count
            rate = 1 / ours / threads
            print(f"folder to batch, {threads} threads: {ours * 1e3:.2f} ms an image, {rate:.0f} a second and core")
        for name, run in sides.items():
            theirs = seconds(run) / count
            print(f"{name}, 1 thread: {theirs * 1e3:.2f} ms an image, {1 / theirs:.0f} a second and core")


if __name__ == "__main__":
    main()
