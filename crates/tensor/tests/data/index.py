"""Writes index.txt: random index expressions and what NumPy makes of them.

A line is `shape | entries | result shape | elements`, where the array is arange, or `shape | entries | error`.
Entries: `i3` integer, `s1:5:-2` slice, `n` new axis, `e` ellipsis, `a2x3=0,1,…` integer array, `m2x3=0,1,…` mask.
"""

import random
from pathlib import Path

import numpy as np

rng = random.Random(20)
NUM_CASES = 600


def sizes(shape):
    return "x".join(map(str, shape))


def broadcastable(shape):
    """A shape that broadcasts to `shape`."""
    cut = rng.randint(0, len(shape))
    return tuple(n if rng.random() < 0.7 else 1 for n in shape[cut:])


def bound(size):
    return rng.choice([None, rng.randint(-size - 2, size + 2)])


def case():
    shape = tuple(
        rng.choice([1, 2, 2, 3, 3, 4, 0] if rng.random() < 0.2 else [1, 2, 3, 4]) for _ in range(rng.randint(0, 4))
    )
    common = tuple(rng.choice([1, 2, 3]) for _ in range(rng.randint(0, 2)))
    count = max(1, common[-1]) if common else 1
    entries, text, axis = [], [], 0
    ellipsis = False
    while axis < len(shape) + (rng.random() < 0.03):
        size = shape[axis] if axis < len(shape) else 2
        kind = rng.choices("isneam", [3, 4, 1, 1, 3, 1.5])[0]
        if kind == "i":
            i = rng.randint(-size, max(size - 1, 0)) if rng.random() < 0.97 else size + 1
            entries.append(i), text.append(f"i{i}")
            axis += 1
        elif kind == "s":
            s = slice(bound(size), bound(size), rng.choice([None, None, 1, 2, 3, -1, -2]))
            entries.append(s)
            text.append("s" + ":".join("" if v is None else str(v) for v in (s.start, s.stop, s.step)))
            axis += 1
        elif kind == "n":
            entries.append(None), text.append("n")
        elif kind == "e":
            if ellipsis and rng.random() < 0.9:
                continue
            ellipsis = True
            entries.append(Ellipsis), text.append("e")
            axis += rng.randint(0, len(shape) - axis) if axis < len(shape) else 0
        elif kind == "a":
            dims = broadcastable(common) if rng.random() < 0.97 else (5,)
            values = np.array(
                [rng.randint(-size, size - 1) if size else 0 for _ in range(int(np.prod(dims)))], np.int64
            )
            entries.append(values.reshape(dims))
            text.append(f"a{sizes(dims)}=" + ",".join(map(str, values)))
            axis += 1
        else:
            ndim = rng.randint(0, min(2, len(shape) - axis)) if axis < len(shape) else 1
            dims = list(shape[axis : axis + ndim]) if axis < len(shape) else [2]
            if rng.random() < 0.03 and dims:
                dims[-1] += 1
            flat = np.zeros(int(np.prod(dims)), bool)
            trues = rng.choice([count, 1]) if rng.random() < 0.9 else rng.randint(0, 3)
            flat[rng.sample(range(flat.size), min(trues, flat.size))] = True
            entries.append(flat.reshape(dims))
            text.append(f"m{sizes(dims)}=" + ",".join(str(int(v)) for v in flat))
            axis += ndim
        if rng.random() < 0.1:
            break
    x = np.arange(int(np.prod(shape))).reshape(shape)
    head = f"{sizes(shape)} | {' '.join(text)} | "
    try:
        y = x[tuple(entries)]
    except IndexError:
        return head + "error"
    y = np.asarray(y)
    if y.size > 60:
        return None
    # NumPy looks at the values of index arrays even if nothing is taken; we leave values to who gathers.
    return head + f"{sizes(y.shape)} | {','.join(map(str, y.ravel()))}"


lines = set()
while len(lines) < NUM_CASES:
    line = case()
    if line:
        lines.add(line)
Path(__file__).with_name("index.txt").write_text("\n".join(sorted(lines)) + "\n")
