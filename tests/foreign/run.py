"""Run the installed NumPy's own test modules on mx.np and count.

    python tests/foreign/run.py [module ...] [--failures] [--update]

A module is one of MODULES, for instance `_core.multiarray`. Tests that are about what arrays of numbers cannot have are
excluded by the rules in rules.py. What fails must be listed in known_failures.txt, one line each with its reason;
`--update` rewrites the list's lines of these modules, keeping the reasons that are there. `--failures` prints every
failure with its error. A reason that begins with "at times: " is that of a test that draws random numbers and may pass.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy

import rewriting

HERE = Path(__file__).resolve().parent
KNOWN = HERE / "known_failures.txt"
CONTRACT = HERE.parent / "api" / "np.tsv"

HEAD = """# NumPy {} tests that fail on mx.np, written by run.py --update: name, two spaces, '# ', reason.
"""
CORE = "multiarray umath ufunc numeric indexing shape_base einsum item_selection arrayprint"
LIB = "function_base arraysetops index_tricks shape_base twodim_base nanfunctions stride_tricks type_check"
MODULES = {
    **{f"_core.{name}": f"numpy._core.tests.test_{name}" for name in CORE.split()},
    **{f"lib.{name}": f"numpy.lib.tests.test_{name}" for name in LIB.split()},
    "linalg": "numpy.linalg.tests.test_linalg",
    "fft.pocketfft": "numpy.fft.tests.test_pocketfft",
    "fft.helper": "numpy.fft.tests.test_helper",
}


@dataclass
class Outcome:
    """What became of one module's tests: name to (outcome, reason)."""

    module: str
    tests: dict[str, list[str]] = field(default_factory=dict)
    trouble: str = ""  # the module could not be run to its end

    def of(self, kind: str) -> dict[str, str]:
        """Reasons of the tests with this outcome."""
        return {name: reason for name, (outcome, reason) in self.tests.items() if outcome == kind}


def run(module: str) -> Outcome:
    """Run one module in a process of its own."""
    source = Path(numpy.__file__).parents[1] / (MODULES[module].replace(".", os.sep) + ".py")
    if not source.exists():
        return Outcome(module, trouble=f"the installed NumPy has no {MODULES[module]}")
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / f"test_{module.replace('.', '_')}.py"
        record = Path(folder) / "record.json"
        environment = dict(
            os.environ,
            FOREIGN_SOURCE=str(source),
            FOREIGN_RECORD=str(record),
            FOREIGN_CONTRACT=str(CONTRACT),
            PYTHONPATH=os.pathsep.join([str(HERE), *map(os.path.abspath, sys.path[1:])]),
        )
        copy.write_text(rewriting.rewrite(source.read_text()))
        command = [sys.executable, "-m", "pytest", "-q", "-p", "plugin", "-p", "no:cacheprovider", "--timeout=300"]
        command += ["-W", "ignore", "--tb=no", "--no-header", "-c", os.devnull, "--rootdir", folder, str(copy)]
        finished = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=folder)
        if not record.exists() or finished.returncode not in (0, 1):
            return Outcome(
                module,
                trouble=f"pytest ended with {finished.returncode}:\n{(finished.stdout + finished.stderr)[-3000:]}",
            )
        return Outcome(module, json.loads(record.read_text()))


def read_known() -> dict[str, str]:
    """Reasons of the known failures by 'module::test'."""
    known = {}
    if KNOWN.exists():
        for line in KNOWN.read_text().splitlines():
            if line and not line.startswith("#"):
                name, _, reason = line.partition("  # ")
                known[name] = reason
    return known


def may_pass(reason: str) -> bool:
    """Whether a known failure is that of a test that draws random numbers."""
    return reason.startswith("at times: ")


def known_version() -> str:
    """The version of NumPy that the list is written for, as its first line says."""
    return KNOWN.read_text().split(" ", 3)[2]


def table(outcomes: Iterable[Outcome]) -> str:
    """Counts a module: passed, failed, excluded; the share that passed of those that count."""
    lines = [f"{'module':24}{'passed':>8}{'failed':>8}{'skipped':>9}{'excluded':>10}{'share':>9}"]
    total: Counter[str] = Counter()
    for outcome in outcomes:
        counts = Counter(kind for kind, _ in outcome.tests.values())
        total += counts
        lines.append(line_of(outcome.module, counts) + ("  " + outcome.trouble if outcome.trouble else ""))
    lines.append(line_of("all", total))
    return "\n".join(lines)


def line_of(name: str, counts: Counter[str]) -> str:
    counted = counts["passed"] + counts["failed"]
    share = counts["passed"] / counted if counted else 0.0
    return f"{name:24}{counts['passed']:8}{counts['failed']:8}{counts['skipped']:9}{counts['excluded']:10}{share:9.2%}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", choices=[[], *MODULES], help="default: all")
    parser.add_argument("--failures", action="store_true", help="print every failure with its error")
    parser.add_argument("--update", action="store_true", help="rewrite known_failures.txt")
    parser.add_argument("-j", type=int, default=os.cpu_count() or 1, help="modules at a time")
    arguments = parser.parse_args()
    modules = arguments.modules or list(MODULES)
    with ThreadPoolExecutor(arguments.j) as pool:
        outcomes = list(pool.map(run, modules))
    known = read_known()
    failures = {f"{o.module}::{name}": reason for o in outcomes for name, reason in o.of("failed").items()}
    if arguments.failures:
        for name, reason in failures.items():
            print(f"{name}\n    {reason}")
    if arguments.update:
        others = {name: reason for name, reason in known.items() if name.split("::")[0] not in modules}
        kept = others | {name: known.get(name, reason) for name, reason in failures.items()}
        head = HEAD.format(numpy.__version__)
        KNOWN.write_text(head + "".join(f"{name}  # {reason}\n" for name, reason in sorted(kept.items())))
    print(table(outcomes))
    unexpected = sorted(failures.keys() - known.keys()) if not arguments.update else []
    for name in unexpected[:50]:
        print(f"fails and is not in {KNOWN.name}: {name}\n    {failures[name]}")
    for outcome in outcomes:
        for name in outcome.of("passed"):
            reason = known.get(f"{outcome.module}::{name}")
            if reason is not None and not may_pass(reason) and not arguments.update:
                print(f"passes now, take it out of {KNOWN.name}: {outcome.module}::{name}")
    return int(bool(unexpected or any(outcome.trouble for outcome in outcomes)))


if __name__ == "__main__":
    sys.exit(main())
