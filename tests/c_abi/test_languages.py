"""The examples in C, Go, Java and JavaScript: a product without a copy, and Python's predictions to the bit."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as onp
import pytest

import mxnet as mx
from c_library import HEADER, ROOT, library, run, tool
from mxnet.demo import build

EXAMPLES = ROOT / "examples"
PRODUCT = "product: 10 20 30 2 2.5 3"


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], onp.ndarray]:
    """The files of the demo's network, exported, and of images; and the scores that Python predicts."""
    mx.random.seed(3)
    net = build()
    net.initialize()
    net.hybridize()
    images = mx.np.random.uniform(0, 1, (5, 1, 8, 8))
    with mx.autograd.record():  # moves the running statistics away from their first values
        net(images)
    scores = net(images).asnumpy()
    folder = tmp_path_factory.mktemp("network")
    files = [*net.export(folder / "net"), folder / "images.safetensors"]
    mx.npx.save(str(files[-1]), {"images": images})
    return [str(file) for file in files], scores


def c_program(folder: Path, name: str = "digits") -> list[str]:
    program, place = folder / name, library().parent
    options = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", f"-I{HEADER}"]
    run(
        [
            tool("gcc"),
            *options,
            str(EXAMPLES / "c" / f"{name}.c"),
            f"-L{place}",
            "-lmxnet",
            f"-Wl,-rpath,{place}",
            "-o",
            str(program),
        ]
    )
    return [str(program)]


def cxx_program(folder: Path) -> list[str]:
    """The header is C++ as well."""
    source = folder / "header.cc"
    source.write_text("#include <mxnet.h>\nint main() { return mx_abi_version() == MX_ABI_VERSION ? 0 : 1; }\n")
    place, program = library().parent, folder / "header"
    run(
        [
            tool("g++"),
            "-Wall",
            "-Werror",
            f"-I{HEADER}",
            str(source),
            f"-L{place}",
            "-lmxnet",
            f"-Wl,-rpath,{place}",
            "-o",
            str(program),
        ]
    )
    return [str(program)]


def go_program(folder: Path) -> list[str]:
    place, program = library().parent, folder / "digits"
    environment = {
        **os.environ,
        "CGO_CFLAGS": f"-I{HEADER}",
        "CGO_LDFLAGS": f"-L{place} -lmxnet -Wl,-rpath,{place}",
        "GOFLAGS": "-mod=mod",
        "GO111MODULE": "off",
        "GOCACHE": str(ROOT / "target" / "go-cache"),
    }
    go = shutil.which("go") or "/usr/local/go/bin/go"
    if not Path(go).exists():
        pytest.skip("go is not installed")
    run([go, "build", "-o", str(program), str(EXAMPLES / "go" / "digits.go")], env=environment)
    return [str(program)]


def java_program(folder: Path) -> list[str]:
    jar = next(iter([*Path("/usr/share/java").glob("jna*.jar"), *(ROOT / "target").glob("jna*.jar")]), None)
    if jar is None:
        pytest.skip("jna.jar is neither in /usr/share/java nor in target/")
    run([tool("javac"), "-cp", str(jar), "-d", str(folder), str(EXAMPLES / "java" / "Digits.java")])
    return [tool("java"), "-cp", f"{jar}:{folder}", f"-Djna.library.path={library().parent}", "Digits"]


def javascript_program(folder: Path) -> list[str]:
    node = tool("node")
    modules = ROOT / "target" / "node_modules"
    if not (modules / "koffi").exists():
        pytest.skip("koffi is not in target/node_modules: npm install --prefix target koffi")
    os.environ["NODE_PATH"], os.environ["MXNET_LIBRARY"] = str(modules), str(library())
    return [node, str(EXAMPLES / "javascript" / "digits.js")]


@pytest.mark.parametrize(
    "make", [c_program, go_program, java_program, javascript_program], ids=["c", "go", "java", "javascript"]
)
def test_multiplies_in_place_and_predicts_what_python_does(
    make: Callable[[Path], list[str]], network: tuple[list[str], onp.ndarray], tmp_path: Path
) -> None:
    files, expected = network
    command = make(tmp_path)
    result = tmp_path / "scores.safetensors"
    printed = run([*command, *files, str(result)]).splitlines()
    assert PRODUCT in printed
    assert f"digits: {' '.join(str(digit) for digit in expected.argmax(1))}" in printed
    assert "handles left: 0" in printed
    scores = mx.npx.load(str(result))["scores"].asnumpy()
    assert scores.tobytes() == expected.tobytes()


def test_the_profilers_example_writes_a_trace_of_operators_and_of_a_graph(tmp_path: Path) -> None:
    net = mx.gluon.nn.Dense(3, activation="tanh", in_units=4)
    net.initialize(mx.init.Xavier())
    net.hybridize()
    net(mx.np.zeros((2, 4)))
    symbol, params = net.export(tmp_path / "net")
    trace = tmp_path / "trace.json"
    printed = run([*c_program(tmp_path, "profile"), str(trace), str(symbol), str(params), "2", "4"])
    assert "handles left: 0" in printed.splitlines()
    events = json.loads(trace.read_text())["traceEvents"]
    products = [event for event in events if (event["name"], event.get("cat")) == ("matmul", "operator")]
    assert [event["args"]["scope"] for event in products] == ["layer:"] * 3
    assert products[0]["args"]["outputs"] == [{"shape": [64, 64], "dtype": "float32"}]
    assert [event["args"]["value"] for event in events if event["name"] == "steps"] == [1, 2, 3]
    spans = [event for event in events if event["name"] == "step"]
    assert len(spans) == 3
    for span, product in zip(spans, products, strict=True):
        assert span["ts"] <= product["ts"] <= span["ts"] + span["dur"]
    assert [event["args"]["outputs"] for event in events if event["name"] == "fully_connected"] == [
        [{"shape": [2, 3], "dtype": "float32"}]
    ]
    counts = {line.split()[0]: line.split()[1] for line in printed.splitlines() if len(line.split()) > 1}
    assert (counts["matmul"], counts["add"], counts["fully_connected"]) == ("3", "3", "1")


def test_the_header_compiles_as_cxx(tmp_path: Path) -> None:
    run(cxx_program(tmp_path))


def test_static_library_and_exported_symbols() -> None:
    shared = library()
    assert shared.with_suffix(".a").exists()
    symbols = run([tool("nm"), "-D", "--defined-only", str(shared)]).split()
    exported = {name for name in symbols if name.startswith("mx_")}
    declared = set(__import__("re").findall(r"\b(mx_\w+)\(", (HEADER / "mxnet.h").read_text()))
    assert declared
    assert declared == exported
