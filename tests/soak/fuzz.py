"""Damaged files for each reader, and hostile fields for exchange: nothing but typed errors may come out.

`python tests/soak/fuzz.py [SECONDS] [NAME ...]` gives each target so many seconds of processor time (300). Inputs on
which a reader crashes, hangs or raises an untyped error are kept in `tests/soak/seeds/`, which
`tests/robustness/test_fuzz_seeds.py` reads again.
"""

import contextlib
import ctypes
import hashlib
import math
import os
import random
import resource
import signal
import struct
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as onp

import mxnet as mx
from mxnet import gluon, image, np, npx, recordio
from mxnet._idx_file import read_idx

SEEDS = Path(__file__).resolve().parent / "seeds"
# What a reader may raise. `InternalError`, a `RuntimeError`, is a defect.
TYPED = (
    OSError,
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    MemoryError,
    OverflowError,
    EOFError,
    mx.error.MXNetError,
)
BATCH = 200
EXTREME = (0, 1, 2**7, 2**8 - 1, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1)


def _saved(write: Callable[[str], object]) -> Callable[[str], list[bytes]]:
    def make(folder: str) -> list[bytes]:
        path = os.path.join(folder, "seed")
        write(path)
        return [Path(path).read_bytes()]

    return make


def _use(found: Any) -> None:
    if isinstance(found, dict):
        list(map(_use, found.values()))
    elif isinstance(found, (list, tuple)):
        list(map(_use, found))
    # An array without elements may have many rows.
    elif isinstance(found, (np.ndarray, onp.ndarray)) and math.prod(max(n, 1) for n in found.shape) < 10**6:
        found.tolist()


def _npz(path: str) -> None:
    found = np.load(path)
    if hasattr(found, "files"):
        _use({name: found[name] for name in found.files})


def _net() -> gluon.nn.Dense:
    net = gluon.nn.Dense(3, in_units=4)
    net.initialize()
    return net


def _trainer() -> gluon.Trainer:
    net = _net()
    trainer = gluon.Trainer(net.collect_params(), "adam")
    with mx.autograd.record():
        y = net(np.ones((2, 4))).sum()
    y.backward()
    trainer.step(1)
    return trainer


def _write_records(path: str) -> None:
    writer = recordio.MXRecordIO(path, "w")
    for k in range(4):
        writer.write(recordio.pack(recordio.IRHeader(0, float(k), k, 0), bytes(range(7 * k))))
    writer.write(recordio.pack(recordio.IRHeader(3, onp.ones(3, "float32"), 9, 0), b"abc"))
    writer.close()


def _read_records(path: str) -> None:
    reader = recordio.MXRecordIO(path, "r")
    try:
        for _ in range(100):
            record = reader.read()
            if record is None:
                break
            recordio.unpack(record)
    finally:
        reader.close()


def _images(_folder: str) -> list[bytes]:
    pixels = onp.arange(17 * 13 * 3, dtype="uint8").reshape(17, 13, 3)
    return [
        image._imencode(pixels, 95, ".jpg"),
        image._imencode(pixels, 3, ".png"),
        image._imencode(pixels[:, :, :1], 3, ".png"),
    ]


def _write_legacy(path: str) -> None:
    x = struct.pack("<IiI2qiii", 0xF993FAC9, 0, 2, 2, 3, 1, 0, 0) + onp.arange(6, dtype="float32").tobytes()
    Path(path).write_bytes(struct.pack("<QQQ", 0x112, 0, 1) + x + struct.pack("<QQ", 1, 1) + b"a")


# The parameters of the exported network.
EXPORTED: list[bytes] = []


def _write_graph(path: str) -> None:
    net = _net()
    net.hybridize()
    net(np.ones((2, 4)))
    symbol, parameters = net.export(path)
    EXPORTED[:] = [Path(parameters).read_bytes()]
    os.replace(symbol, path)


def _read_graph(path: str) -> None:
    parameters = path + ".params"
    Path(parameters).write_bytes(EXPORTED[0])
    mx.graph.load(path, parameters)


def _interface(data: bytes) -> None:
    """Numbers in the place of every field of `__array_interface__`; the address stays."""
    if len(data) < 48:
        return
    memory = (ctypes.c_uint8 * 64)()
    a, b, s, t, offset, rank = struct.unpack("<6q", data[:48])
    shape, strides = ((a,), (s,)) if rank % 2 else ((a, b), (s, t))
    fields = {"version": 3, "shape": shape, "typestr": ["<f4", "|u1", "<c16", ">i8", "|b1"][rank % 5]}
    fields["data"] = (memory, bytearray(64))[rank % 2]
    fields["offset"] = offset
    if rank % 3:
        fields["strides"] = strides
    holder = type("Holder", (), {"__array_interface__": fields})()
    for call in (np.array, np.asarray, lambda x: np.ones(4) + x, lambda x: np.arange(4)[x]):
        with contextlib.suppress(*TYPED):
            _use(call(holder))


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


def _dlpack(data: bytes) -> None:
    """Numbers in the place of every field of a DLPack tensor but its addresses. What is accepted is not read."""
    if len(data) < 56:
        return
    memory = (ctypes.c_uint8 * 4096)()
    device, number, ndim, code, bits, lanes = struct.unpack("<iiiBBH", data[:16])
    axes = (ctypes.c_int64 * 64)(*struct.unpack("<2q", data[16:32]))
    steps = (ctypes.c_int64 * 64)(*struct.unpack("<2q", data[32:48]))
    (offset,) = struct.unpack("<Q", data[48:56])
    tensor = _Tensor(
        ctypes.addressof(memory), device, number, ndim, code, bits, lanes,
        ctypes.addressof(axes), ctypes.addressof(steps), offset, None, None,
    )  # fmt: skip
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    capsule = new(ctypes.addressof(tensor), b"dltensor", None)
    holder = type(
        "Holder", (), {"__dlpack__": lambda *_, **__: capsule, "__dlpack_device__": lambda _: (device, number)}
    )()
    with contextlib.suppress(*TYPED):
        found = np.from_dlpack(holder)
        assert found.ndim == ndim == len(found.shape)
    KEPT.append((memory, axes, steps, tensor))
    del KEPT[:-50]


KEPT: list[Any] = []
TARGETS: dict[str, tuple[Callable[[str], list[bytes]], Callable[[str], object]]] = {
    "safetensors": (
        _saved(lambda path: npx.save(path, {"x": np.arange(9), "y": np.ones((3, 4), dtype="bfloat16")})),
        lambda path: _use(npx.load(path)),
    ),
    "npy": (_saved(lambda path: npx.save(path, np.arange(12).reshape(3, 4))), lambda path: _use(np.load(path))),
    "npz": (_saved(lambda path: npx.savez(path, x=np.arange(9), y=np.ones((2, 2)))), _npz),
    "legacy": (_saved(_write_legacy), lambda path: _use(npx.load(path))),
    "parameters": (_saved(lambda path: _net().save_parameters(path)), lambda path: _net().load_parameters(path)),
    "states": (_saved(lambda path: _trainer().save_states(path)), lambda path: _trainer().load_states(path)),
    "graph": (_saved(_write_graph), _read_graph),
    "sparse": (
        _saved(lambda path: mx.sparse.save(path, {"a": mx.sparse.csr_array(np.eye(4))})),
        lambda path: [_use(x.toarray() if hasattr(x, "toarray") else x) for x in mx.sparse.load(path).values()],
    ),
    "records": (_saved(_write_records), _read_records),
    "idx": (
        _saved(lambda path: Path(path).write_bytes(struct.pack(">BBBBII", 0, 0, 8, 2, 3, 4) + bytes(12))),
        lambda path: _use(read_idx(path)),
    ),
    "images": (_images, lambda path: _use(image.imread(path))),
    "interface": (
        lambda _: [struct.pack("<6q", 4, 4, 4, 16, 0, k) for k in range(30)],
        lambda path: _interface(Path(path).read_bytes()),
    ),
    "dlpack": (
        lambda _: [struct.pack("<iiiBBH2q2qQ", 1, 0, 2, 2, 32, 1, 2, 3, 3, 1, 0)],
        lambda path: _dlpack(Path(path).read_bytes()),
    ),
}  # fmt: skip


def mutated(content: bytes, rng: random.Random) -> bytes:
    """A few changes: bits, bytes, numbers at the edges, parts that are cut, doubled or moved."""
    data = bytearray(content)
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(data) + 1)
        match rng.randrange(7):
            case 0 if at < len(data):
                data[at] ^= 1 << rng.randrange(8)
            case 1 if at < len(data):
                data[at] = rng.randrange(256)
            case 2:
                size = rng.choice((1, 2, 4, 8))
                number = rng.choice(EXTREME) % 2 ** (8 * size)
                data[at : at + size] = number.to_bytes(size, rng.choice(("little", "big")))
            case 3:
                del data[at : at + rng.choice((1, 2, 8, 100))]
            case 4:
                data[at:at] = data[at : at + rng.choice((1, 4, 30))]
            case 5:
                data[at:at] = rng.randbytes(rng.choice((1, 4, 30)))
            case 6 if rng.random() < 0.2:
                del data[at:]
    return bytes(data)


def read(name: str, content: bytes, path: str) -> str:
    """How reading ended, in a word."""
    Path(path).write_bytes(content)
    try:
        TARGETS[name][1](path)
    except TYPED as error:
        return "defect" if isinstance(error, mx.error.InternalError) else type(error).__name__
    except Exception as error:  # noqa: BLE001  # every other class is a finding
        return f"defect {type(error).__name__}"
    return "read"


def batch(name: str, contents: list[bytes], folder: str) -> tuple[int, str]:
    """Reads the contents in a process of its own; the number of the one that it ended at, and how."""
    path, at = os.path.join(folder, "damaged"), os.path.join(folder, "at")
    child = os.fork()
    if child == 0:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 2)
        resource.setrlimit(resource.RLIMIT_AS, (16 << 30, resource.RLIM_INFINITY))
        with open(at, "wb", 0) as note:
            for i, content in enumerate(contents):
                os.pwrite(note.fileno(), b"%10d" % i, 0)
                signal.alarm(20)
                found = read(name, content, path)
                if found.startswith("defect"):
                    os.pwrite(note.fileno(), b"%10d %s" % (i, found.encode()), 0)
                    os._exit(99)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status == 0:
        return len(contents), ""
    note = Path(at).read_text().split(maxsplit=1)
    return int(note[0]), note[1] if status == 99 else f"exit {status}"


def processor_time() -> float:
    """Seconds that this process and its children took."""
    return sum(os.times()[:4])


def fuzz(name: str, seconds: float, seed: int) -> Counter[str]:
    """Reads damaged inputs for so many seconds of processor time."""
    counts: Counter[str] = Counter()
    rng = random.Random(f"{name} {seed}")
    end = processor_time() + seconds
    with tempfile.TemporaryDirectory() as folder:
        seeds = TARGETS[name][0](folder)
        while processor_time() < end:
            contents = [mutated(rng.choice(seeds), rng) for _ in range(BATCH)]
            done, how = batch(name, contents, folder)
            counts["inputs"] += done
            if how:
                counts[how] += 1
                SEEDS.mkdir(exist_ok=True)
                kept = SEEDS / f"{name}-{hashlib.sha256(contents[done]).hexdigest()[:12]}"
                kept.write_bytes(contents[done])
                print(f"{name}: {how}: {kept}", flush=True)
    return counts


def main() -> int:
    """Run the targets; the exit status."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 300.0
    is_bad = False
    for name in sys.argv[2:] or TARGETS:
        found = fuzz(name, seconds, int(os.environ.get("SEED", "0")))
        is_bad |= len(found) > 1
        print(f"{name}: {dict(found)}", flush=True)
    return int(is_bad)


if __name__ == "__main__":
    raise SystemExit(main())
