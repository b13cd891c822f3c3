"""Throughput of an exported network: the HTTP service `examples/rust-serve`, over calls in this process.

Clients send requests that are encoded beforehand, JSON or binary, each on a connection of its own: more of them than
cores, so that the service always has work. They use the same cores as the service, so processor time is compared as
well: that of the service for a request, over that of a call. Answers are compared with the predictions first. Names of
networks as arguments choose some.
"""

import json
import os
import socket
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


def processor_time(process: int) -> float:
    """Seconds of processor time that a process took."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def throughput(call: Callable[[int], Any], process: int) -> tuple[float, float]:
    """Calls per second of `call(client)` by all clients at once, and seconds of the process for a call."""

    def run(client: int) -> int:
        count, end = 0, time.perf_counter() + SECONDS
        while time.perf_counter() < end:
            call(client)
            count += 1
        return count

    start, before = time.perf_counter(), processor_time(process)
    with ThreadPoolExecutor(CLIENTS) as pool:
        total = sum(pool.map(run, range(CLIENTS)))
    return total / (time.perf_counter() - start), (processor_time(process) - before) / total


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
        connections = [socket.create_connection(("127.0.0.1", port)) for _ in range(CLIENTS)]
        # Encoded beforehand and sent through plain sockets: the clients run on the cores of the service.
        requests = {
            kind: (
                f"POST /predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: {kind}\r\n"
                f"content-length: {len(body)}\r\n\r\n"
            ).encode()
            + body
            for kind, body in bodies.items()
        }

        def ask(client: int, kind: str) -> bytes:
            """Send a request and return the body of the answer."""
            connections[client].sendall(requests[kind])
            answer = connections[client].recv(1 << 20)
            head, _, body = answer.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200"), head
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r")[0])
            while len(body) < length:
                body += connections[client].recv(length - len(body))
            return body

        found = numpy.array(json.loads(ask(0, "application/json"))["outputs"][0], dtype="float32")
        assert found.tobytes() == expected.tobytes()
        assert ask(0, "application/safetensors").endswith(expected.tobytes())
        given = np.array(x)
        text, binary, own = [], [], []
        for _ in range(ROUNDS):
            text.append(throughput(lambda client: ask(client, "application/json"), process.pid))
            binary.append(throughput(lambda client: ask(client, "application/safetensors"), process.pid))
            own.append(throughput(lambda _: graph(given).wait_to_read(), os.getpid()))
        process.terminate()

    def ratio(found: list[tuple[float, float]], which: int) -> float:
        return statistics.median(x[which] / y[which] for x, y in zip(found, own, strict=True))

    calls = statistics.median(rate for rate, _ in own)
    ratios = [ratio(found, which) for which in (0, 1) for found in (text, binary)]
    print(f"{name:<10}{number:>4}{calls * number:>12.0f}" + "".join(f"{ratio:>8.2f}" for ratio in ratios), flush=True)


def main() -> None:
    if not PROGRAM.is_file():
        sys.exit(f"{PROGRAM} is not there: python tools/steps.py programs")
    print(f"{'network':<10}{'':>4}{'images/s':>12}{'requests':>16}{'processor time':>16}")
    print(f"{'':<26}" + f"{'JSON':>8}{'binary':>8}" * 2)
    with tempfile.TemporaryDirectory() as folder:
        for build, numbers in ((mlp, (1, 32)), (lenet, (1, 32)), (resnet, (1, 32)), (resnet50, (1,))):
            if sys.argv[1:] and build.__name__ not in sys.argv[1:]:
                continue
            for number in numbers:
                measure(build.__name__, build, Path(folder), number)


if __name__ == "__main__":
    main()
