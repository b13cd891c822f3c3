"""pytest plugin of the runner: applies the rules, records what became of each test.

Environment: FOREIGN_SOURCE is the file of NumPy's test module, FOREIGN_RECORD the file for the outcomes (JSON),
FOREIGN_CONTRACT the table of the public names.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

import mxnet as mx
import namespace
import rules


class Recorder:
    """Excludes by rule before the run, sorts the outcomes after it."""

    def __init__(self) -> None:
        self.rules = rules.Rules(Path(os.environ["FOREIGN_CONTRACT"]).read_text())
        code = Path(os.environ["FOREIGN_SOURCE"]).read_text()
        self.rules.read_imports(code)
        self.sources = rules.sources(code)
        self.outcomes: dict[str, list[str]] = {}

    @staticmethod
    def name(nodeid: str) -> str:
        return nodeid.split("::", 1)[1]

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        namespace.be_lenient(False)
        excluded = {function: self.rules.of_source(source) for function, source in self.sources.items()}
        for item in items:
            name = self.name(item.nodeid)
            callspec = getattr(item, "callspec", None)
            by = excluded.get(name.split("[")[0])
            by = by or next(
                filter(
                    None, (self.rules.of_parameter(value) for value in (callspec.params.values() if callspec else ()))
                ),
                None,
            )
            if by:
                self.outcomes[name] = ["excluded", by]
        items[:] = [item for item in items if self.name(item.nodeid) not in self.outcomes]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[Any]) -> Any:
        report = yield
        name = self.name(item.nodeid)
        if call.excinfo is not None and report.outcome == "failed":
            error = call.excinfo.value
            chain, seen = [], error
            while seen is not None and len(chain) < 5:
                chain.append(str(seen))
                seen = seen.__cause__ or seen.__context__
            by = next(filter(None, map(rules.Rules.of_error, chain)), None)
            message = " ".join(str(error).split())[:300]
            self.outcomes[name] = ["excluded", by] if by else ["failed", f"{type(error).__name__}: {message}"]
        elif name not in self.outcomes or self.outcomes[name][0] == "passed":
            if report.skipped:
                self.outcomes[name] = ["skipped", str(getattr(report, "wasxfail", "") or "by NumPy's own mark")]
            elif report.when == "call":
                self.outcomes[name] = ["passed", ""]
        return report

    def pytest_sessionfinish(self) -> None:
        Path(os.environ["FOREIGN_RECORD"]).write_text(json.dumps(self.outcomes, indent=0))


def pytest_configure(config: pytest.Config) -> None:
    mx.npx.set_np(dtype=True)  # NumPy's default float and promotion
    mx.np.seterr(divide="warn", over="warn", invalid="warn")  # NumPy's default
    namespace.be_lenient(True)
    config.pluginmanager.register(Recorder(), "foreign-recorder")
