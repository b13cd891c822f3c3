"""examples/rust-serve answers as Python does, under load and to malformed requests."""

import http.client
import json
import re
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import numpy
import pytest

import mxnet as mx
from mxnet import demo, np, npx
from mxnet.gluon.data.vision import Digits
from rust_examples import ROOT, program

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
THREADS, REQUESTS = 16, 40


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """What the demo exports, and what it predicts for some images."""
    folder = tmp_path_factory.mktemp("served")
    demo.main(["--epochs", "1", "--output", str(folder)])
    symbol, params = folder / "digits-symbol.json", next(folder.glob("digits-*.params"))
    graph = mx.graph.load(symbol, params)
    images = numpy.stack([image for image, _ in Digits(train=False)]).transpose(0, 3, 1, 2)[:20].astype("float32") / 16
    return symbol, params, images, [graph(np.array(image[None])).asnumpy() for image in images]


@contextmanager
def served(symbol, params):
    """A running service, as its port; it ends in order."""
    command = [*program("rust-serve"), str(symbol), str(params), "127.0.0.1:0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline()
            yield int(re.fullmatch(r"listening on http://127\.0\.0\.1:(\d+)\n", line)[1])
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        finally:
            process.kill()


def connected(port):
    return closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60))


def ask(connection, method, path, body=None, headers=None):
    connection.request(method, path, body, headers or {})
    answer = connection.getresponse()
    return answer.status, answer.read()


def test_concurrent_requests_get_the_predictions_of_python(network):
    symbol, params, images, expected = network
    bodies = [json.dumps({"inputs": [image[None].tolist()]}) for image in images]

    def client(start):
        wrong = 0
        with connected(port) as connection:
            for i in range(start, start + REQUESTS):
                status, answer = ask(connection, "POST", "/predict", bodies[i % len(bodies)])
                assert status == 200, answer
                found = numpy.array(json.loads(answer)["outputs"][0], dtype="float32")
                wrong += found.tobytes() != expected[i % len(bodies)].tobytes()
        return wrong

    with served(symbol, params) as port, ThreadPoolExecutor(THREADS) as pool:
        assert list(pool.map(client, range(THREADS))) == [0] * THREADS


def binary(tmp_path, **arrays):
    """The bytes of a safetensors file."""
    npx.save(str(tmp_path / "arrays.safetensors"), {name: np.array(x) for name, x in arrays.items()})
    return (tmp_path / "arrays.safetensors").read_bytes()


BINARY = {"content-type": "application/safetensors"}


def test_a_binary_request_gets_a_binary_answer(network, tmp_path):
    symbol, params, images, expected = network
    with served(symbol, params) as port, connected(port) as connection:
        status, answer = ask(connection, "POST", "/predict", binary(tmp_path, **{"0": images}), BINARY)
        assert status == 200
        (tmp_path / "answer.safetensors").write_bytes(answer)
        outputs = npx.load(str(tmp_path / "answer.safetensors"))
        assert list(outputs) == ["0"]
        graph = mx.graph.load(symbol, params)
        assert outputs["0"].asnumpy().tobytes() == graph(np.array(images)).asnumpy().tobytes()
        body = binary(tmp_path, **{"0": images[:1]})
        _, answer = ask(connection, "POST", "/predict", body, BINARY)
        assert answer.endswith(expected[0].tobytes())
        for wrong, message in {
            body[:-3]: "truncated",
            b"{}": "at least 8 are needed",
            binary(tmp_path, data=images): "no input `0`",
            binary(tmp_path, **{"0": images, "1": images}): "takes 1 inputs, found 2",
            binary(tmp_path, **{"0": images.astype("float64")}): "must have dtype float32, found float64",
            binary(tmp_path, **{"0": images[0]}): "must have shape",
        }.items():
            status, answer = ask(connection, "POST", "/predict", wrong, BINARY)
            assert (status, message in json.loads(answer)["error"]) == (400, True), answer


MALFORMED = {
    b"": "not JSON",
    b"{": "not JSON",
    b"\xff\xfe": "not JSON",
    b"[" * 100_000: "not JSON",
    b"[]": "an object with `inputs`",
    b"{}": "`inputs` must be a list",
    b'{"inputs": 3}': "`inputs` must be a list",
    b'{"inputs": []}': "takes 1 inputs, found 0",
    b'{"inputs": [[1]], "output": 1}': "unknown field `output`",
    b'{"inputs": [[1.0]]}': r"argument 0 must have shape \(any, 1, 8, 8\), found \(1,\)",
    b'{"inputs": [[[1, 2], [3]]]}': "input 0: lists of axis 1 have different lengths",
    b'{"inputs": [["1"]]}': "input 0: only numbers",
    b'{"inputs": [null]}': "input 0: only numbers",
    b'{"inputs": [1e999]}': "not JSON",
}


def test_malformed_requests_are_answered_with_what_is_wrong(network):
    symbol, params, images, _ = network
    with served(symbol, params) as port, connected(port) as connection:
        for body, message in MALFORMED.items():
            status, answer = ask(connection, "POST", "/predict", body)
            assert (status, bool(re.search(message, json.loads(answer)["error"]))) == (400, True), (body[:40], answer)
        assert ask(connection, "GET", "/predict")[0] == 405
        assert ask(connection, "GET", "/nothing")[0] == 404
        assert ask(connection, "GET", "/health") == (200, b"ok")
        assert json.loads(ask(connection, "GET", "/model")[1]) == {
            "inputs": [{"shape": [None, 1, 8, 8], "dtype": "float32"}]
        }
        # The service may close the connection before it has read all of it.
        with suppress(ConnectionError), connected(port) as large:
            assert ask(large, "POST", "/predict", b" " * (33 << 20))[0] == 413
        for number in (1, 3):
            body = json.dumps({"inputs": [images[:number].tolist()]})
            status, answer = ask(connection, "POST", "/predict", body)
            assert (status, len(json.loads(answer)["outputs"][0])) == (200, number)


def test_a_damaged_model_ends_the_service_at_its_start(network, tmp_path):
    symbol, params, *_ = network
    for name, damage in {
        "params": lambda data: data[: len(data) // 2],
        "symbol": lambda data: data[: len(data) // 2],
        "newer": lambda data: data.replace(b'"version": 1', b'"version": 99', 1),
    }.items():
        files = {"symbol": Path(symbol).read_bytes(), "params": Path(params).read_bytes()}
        changed = "params" if name == "params" else "symbol"
        files[changed] = damage(files[changed])
        for part, data in files.items():
            (tmp_path / part).write_bytes(data)
        command = [*program("rust-serve"), str(tmp_path / "symbol"), str(tmp_path / "params"), "127.0.0.1:0"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
        assert (done.returncode, done.stdout) == (1, ""), (name, done)
        assert done.stderr.startswith("Error: ") and "panicked" not in done.stderr
