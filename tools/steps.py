"""Run the steps of `make develop`, `make lint`, `make test`, `make bench` and `make races`, time them, and sum up.

A step is one command. The steps go on after a failure, except those that need one which failed. The last line has the
form `N passed, N failed, N skipped`: tests are counted where a step prints how many it ran, and a step that prints no
count is one.
"""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = sys.executable

CARGO_COUNT = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored")
PYTEST_COUNT = re.compile(r"^(?:=+ )?((?:\d+ [a-z]+(?:, )?)+) in [\d.]+s")
PYTEST_WORDS = {"passed": 0, "xfailed": 0, "failed": 1, "error": 1, "errors": 1, "xpassed": 1, "skipped": 2}


@dataclass(frozen=True)
class Step:
    """One command. `needs` names steps without which it makes no sense; `limit_s` ends a step that hangs."""

    name: str
    command: Sequence[str]
    env: dict[str, str | None] = field(default_factory=dict)  # None removes the variable
    needs: tuple[str, ...] = ()
    limit_s: int = 1800


@dataclass
class Outcome:
    step: Step
    seconds: float = 0.0
    error: str = ""  # empty when the step did what it should
    counts: list[int] = field(default_factory=lambda: [0, 0, 0])  # passed, failed, skipped


def count_tests(line: str) -> list[int] | None:
    """The (passed, failed, skipped) that a closing line of cargo test or pytest states; None for any other line."""
    if match := CARGO_COUNT.match(line):
        return [int(group) for group in match.groups()]
    if match := PYTEST_COUNT.match(line):
        counts = [0, 0, 0]
        for part in match[1].split(", "):
            number, word = part.split()
            if word in PYTEST_WORDS:
                counts[PYTEST_WORDS[word]] += int(number)
        return counts
    return None


def run(step: Step) -> Outcome:
    """Run one step, its output passed through as it comes."""
    outcome = Outcome(step)
    print(f"\n--- {step.name}: {' '.join(step.command)}", flush=True)
    start = time.monotonic()
    process = subprocess.Popen(
        step.command,
        cwd=ROOT,
        env={name: value for name, value in {**os.environ, **step.env}.items() if value is not None},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,  # so that a step that hangs can be ended with all its children
    )
    hung = threading.Event()

    def end() -> None:
        hung.set()
        os.killpg(process.pid, signal.SIGKILL)

    timer = threading.Timer(step.limit_s, end)
    timer.start()
    counted = False
    try:
        assert process.stdout is not None
        for line in process.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            if (counts := count_tests(line)) is not None:
                counted = True
                outcome.counts = [a + b for a, b in zip(outcome.counts, counts, strict=True)]
        code = process.wait()
    except KeyboardInterrupt:
        os.killpg(process.pid, signal.SIGINT)
        process.wait()
        raise
    finally:
        timer.cancel()
        if process.stdout is not None:
            process.stdout.close()
    outcome.seconds = time.monotonic() - start
    if hung.is_set():
        outcome.error = f"ended after {step.limit_s} s"
    elif code:
        outcome.error = f"exit status {code}"
    if not counted:
        outcome.counts = [int(not outcome.error), int(bool(outcome.error)), 0]
    elif outcome.error and not outcome.counts[1]:
        outcome.counts[1] = 1  # it failed before or after the tests it counted
    return outcome


def run_all(steps: Iterable[Step]) -> list[Outcome]:
    outcomes: list[Outcome] = []
    failed: set[str] = set()
    for step in steps:
        if missing := failed.intersection(step.needs):
            outcome = Outcome(step, error=f"not run: {', '.join(sorted(missing))} failed", counts=[0, 1, 0])
        else:
            outcome = run(step)
        if outcome.error:
            failed.add(step.name)
        outcomes.append(outcome)
    return outcomes


def summary(outcomes: list[Outcome]) -> str:
    """The closing table, and the plain line that machines read."""
    width = max(len(outcome.step.name) for outcome in outcomes)
    lines = ["", "=" * 72]
    for outcome in outcomes:
        tests = "" if sum(outcome.counts) == 1 else f"  {outcome.counts[0]} tests"
        lines.append(f"{outcome.step.name:<{width}} {outcome.seconds:8.1f} s  {outcome.error or 'ok'}{tests}")
    total = sum(outcome.seconds for outcome in outcomes)
    passed, bad, skipped = (sum(column) for column in zip(*(outcome.counts for outcome in outcomes), strict=True))
    lines += [f"{'all':<{width}} {total:8.1f} s", f"{passed} passed, {bad} failed, {skipped} skipped"]
    return "\n".join(lines)


def cargo(*arguments: str) -> list[str]:
    subcommand, *rest = arguments
    return ["cargo", subcommand, "--locked", *rest]


def develop() -> list[Step]:
    # maturin takes VIRTUAL_ENV for the environment to install into, and refuses to choose when conda's is set as well.
    environment = {"VIRTUAL_ENV": sys.prefix, "CONDA_PREFIX": None}
    return [Step("build", [PYTHON, "-m", "maturin", "develop", "--profile", "develop", "--locked"], environment)]


def build_environment() -> dict[str, str | None]:
    """The environment that maturin gives to cargo. With it and the same profile, cargo builds nothing twice.

    maturin writes the configuration file, so this is looked up when the extension is there.
    """
    configs = sorted(ROOT.glob("target/maturin/pyo3-config-*.txt"))
    return {
        "PYO3_BUILD_EXTENSION_MODULE": "1",
        "PYO3_ENVIRONMENT_SIGNATURE": f"cpython-{sys.version_info.major}.{sys.version_info.minor}-64bit",
        "PYO3_PYTHON": PYTHON,
        "PYTHON_SYS_EXECUTABLE": PYTHON,
        **({"PYO3_CONFIG_FILE": str(configs[0])} if configs else {}),
    }


def programs() -> list[Step]:
    """The C library and the examples in Rust, together with the extension and of the same crates."""
    packages = ["-p", "mxnet-python", "-p", "mxnet-c", "-p", "mxnet", "-p", "rust-serve"]
    command = cargo("build", "--profile", "develop", *packages, "--lib", "--bins", "--examples")
    return [Step("programs", command, build_environment())]


def rust_tests() -> list[Step]:
    """The Rust tests, linked to the crates that the extension was built from: those are what is tested and shipped.

    Plain `cargo test` builds all crates again, with debug assertions and overflow checks; `make races` has both.
    """
    # The packages of one command share the features of their dependencies. proptest, which only this crate uses, asks
    # for one that the extension has not: together with it, all crates would be built again.
    alone = ["mxnet-tensor"]
    crates = ("engine", "kernels", "fft", "image", "core", "ops", "graph", "module", "cuda", "c")
    others = [f"mxnet-{crate}" for crate in crates]
    # The extension has no Rust tests. It is named because of the features of its dependencies.
    others += ["mxnet", "rust-serve", "mxnet-python"]
    environment = build_environment()
    steps = []
    for name, packages in (("cargo test, tensor", alone), ("cargo test", others)):
        options = [word for package in packages for word in ("-p", package)]
        steps.append(Step(name, cargo("test", "--profile", "develop", *options), environment))
    return steps


def lint() -> list[Step]:
    return [
        Step("tree", [PYTHON, "tools/lint.py"]),
        Step("licences", [PYTHON, "tools/licences.py", "--check"]),
        Step("format (Rust)", ["cargo", "fmt", "--all", "--check"]),
        Step("format (Python)", [PYTHON, "-m", "ruff", "format", "--check", "--quiet", "."]),
        Step("ruff", [PYTHON, "-m", "ruff", "check", "."]),
        Step("mypy", [PYTHON, "-m", "mypy"]),
        Step("clippy", cargo("clippy", "--profile", "develop", "--workspace", "--all-targets", "--", "-D", "warnings")),
    ]


def test() -> list[Step]:
    # The tests of functions that use cached plans or fast paths for elements, with both switched off.
    folders = [f"tests/{name}" for name in ("autograd", "dtype", "index", "ndarray", "sort", "ufunc")]
    target = ROOT / "target" / "develop"
    built: dict[str, str | None] = {
        "MXNET_LIBRARY": str(target / "libmxnet.so"),
        "MXNET_EXAMPLES": str(target / "examples"),
    }
    general = [PYTHON, "-m", "pytest", "-q", "-n", "2", *folders]
    loom = cargo("test", "-p", "mxnet-engine", "--profile", "develop", "--test", "loom", "--target-dir", "target/loom")
    return [
        *develop(),
        Step("programs", [PYTHON, "tools/steps.py", "programs"], needs=("build",)),
        *lint(),
        Step("cargo test", [PYTHON, "tools/steps.py", "rust-tests"], needs=("programs",)),
        Step("loom", loom, {"RUSTFLAGS": "--cfg loom"}),
        Step("doctests", [PYTHON, "-m", "pytest", "-q", "--doctest-modules", "python/mxnet"], needs=("build",)),
        Step("pytest", [PYTHON, "-m", "pytest", "-q", "-n", "2"], built, needs=("build", "programs")),
        Step("pytest, general path", general, {"MXNET_TESTS_GENERAL": "1"}, needs=("build",)),
    ]


def bench() -> list[Step]:
    # Modules that start with an underscore are what the others share.
    scripts = sorted(path for path in ROOT.glob("benches/*.py") if not path.name.startswith("_"))
    steps = [Step(path.stem, [PYTHON, str(path.relative_to(ROOT))]) for path in scripts]
    metadata = json.loads(subprocess.check_output(cargo("metadata", "--no-deps", "--format-version", "1"), cwd=ROOT))
    for package in metadata["packages"]:
        for target in package["targets"]:
            if target["kind"] == ["bench"]:
                steps.append(Step(target["name"], cargo("bench", "-p", package["name"], "--bench", target["name"])))
    return steps


def races() -> list[Step]:
    """The Rust tests under ThreadSanitizer, the standard library instrumented as well: its sources must be there.

    `rustup component add rust-src` brings them; cargo takes those in `__CARGO_TESTS_ONLY_SRC_ROOT` if it is set.
    """
    answer = subprocess.check_output(["rustc", "-vV"], text=True)
    target = next(line.removeprefix("host: ") for line in answer.splitlines() if line.startswith("host: "))
    environment: dict[str, str | None] = {
        # The switches of the compiler that a stable one has as well, and takes with this only.
        "RUSTC_BOOTSTRAP": "1",
        "RUSTFLAGS": "-Zsanitizer=thread --cfg sanitize_thread",
        # A forked child goes on. A test fails by the exit status that the first race gives.
        "TSAN_OPTIONS": "die_after_fork=0 halt_on_error=1",
    }
    crates = [
        "mxnet-engine",
        "mxnet-tensor",
        "mxnet-kernels",
        "mxnet-fft",
        "mxnet-core",
        "mxnet-ops",
        "mxnet-graph",
        "mxnet",
    ]
    options = ["-Zbuild-std", "--target", target, "--target-dir", "target/races", "--lib", "--tests", "--no-fail-fast"]
    return [Step(crate, cargo("test", *options, "-p", crate), environment, limit_s=3600) for crate in crates]


GROUPS = {
    "develop": develop,
    "programs": programs,
    "rust-tests": rust_tests,
    "lint": lint,
    "test": test,
    "bench": bench,
    "races": races,
}


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or arguments[0] not in GROUPS:
        print(f"usage: steps.py {{{','.join(GROUPS)}}}", file=sys.stderr)
        return 2
    steps = GROUPS[arguments[0]]()
    if not steps:
        print("nothing to run")
        return 0
    outcomes = run_all(steps)
    print(summary(outcomes), flush=True)
    return int(any(outcome.error for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
