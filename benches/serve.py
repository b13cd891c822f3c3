"""Throughput of an exported network: the HTTP service `examples/rust-serve`, over calls in this process.

Clients send requests that are encoded beforehand, JSON or binary, each on a connection of its own: more of them than
cores, so that the service always has work. They use the same cores as the service. Answers are compared with the
predictions first. Names of networks as arguments choose some.
"""

import http.client
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy
from compiled import lenet, mlp, resnet

import mxnet as mx
from mxnet import np, npx
from mxnet.gluon import model_zoo

# `python tools/steps.py programs` builds it.
PROGRAM = Path(__file__).resolve().parent.parent / "target/develop/rust-serve"
CLIENTS = 4
SECONDS = 1.0
ROUNDS = 3


def resnet50() -> tuple[Any, Any, tuple[int, ...]]:
    return model_zoo.vision.resnet50_v1(), None, (1, 3, 224, 224)


def throughput(call: Callable[[int], Any]) -> float:
    """Calls per second of `call(client)` by all clients at once."""

    def run(client: int) -> int:
        count, end = 0, time.perf_counter() + SECONDS
        while time.perf_counter() < end:
            call(client)
            count += 1
        return count

    start = time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as pool:
        total = sum(pool.map(run, range(CLIENTS)))
    return total / (time.perf_counter() - start)


def measure(name: str, build: Callable[[], Any], folder: Path, number: int) -> None:
    net, _, shape = build()
    x = numpy.random.default_rng(0).normal(0, 1, (number, *shape[1:])).astype("float32")
    net.initialize(mx.init.Xavier())
    net.hybridize()
    net(np.array(x))
    symbol, params = net.export(str(folder / name))
    graph = mx.graph.load(symbol, params)
    expected = graph(np.array(x)).asnumpy()
    npx.save(str(folder / "request"), {"0": np.array(x)})
    bodies = {
        "application/json": json.dumps({"inputs": [x.tolist()]}).encode(),
        "application/safetensors": (folder / "request").read_bytes(),
    }
    command = [str(PROGRAM), str(symbol), str(params), "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline().rsplit(":", 1)[1])
        connections = [http.client.HTTPConnection("127.0.0.1", port) for _ in range(CLIENTS)]

        def ask(client: int, kind: str) -> bytes:
            connections[client].request("POST", "/predict", bodies[kind], {"content-type": kind})
            return connections[client].getresponse().read()

        found = numpy.array(json.loads(ask(0, "application/json"))["outputs"][0], dtype="float32")
        assert found.tobytes() == expected.tobytes()
        assert ask(0, "application/safetensors").endswith(expected.tobytes())
        given = np.array(x)
        text, binary, own = [], [], []
        for _ in range(ROUNDS):
            text.append(throughput(lambda client: ask(client, "application/json")))
            binary.append(throughput(lambda client: ask(client, "application/safetensors")))
            own.append(throughput(lambda _: graph(given).wait_to_read()))
        process.terminate()
    calls = statistics.median(own)
    ratios = [statistics.median(found) / calls for found in (text, binary)]
    print(f"{name:<10}{number:>4}{calls * number:>12.0f}" + "".join(f"{ratio:>8.2f}" for ratio in ratios), flush=True)


def main() -> None:
    if not PROGRAM.is_file():
        sys.exit(f"{PROGRAM} is not there: python tools/steps.py programs")
    print(f"{'network':<10}{'':>4}{'images/s':>12}{'JSON':>8}{'binary':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for build, numbers in ((mlp, (1, 32)), (lenet, (1, 32)), (resnet, (1, 32)), (resnet50, (1,))):
            if sys.argv[1:] and build.__name__ not in sys.argv[1:]:
                continue
            for number in numbers:
                measure(build.__name__, build, Path(folder), number)


if __name__ == "__main__":
    main()
