"""The runner behind `make`: counting, order, failures, time limits, and the closing lines."""

import sys

import pytest

import steps


def python(code):
    return [sys.executable, "-c", code]


@pytest.mark.parametrize(
    ("line", "counts"),
    [
        ("test result: ok. 12 passed; 0 failed; 3 ignored; 0 measured; 0 filtered out; finished in 0.01s", [12, 0, 3]),
        ("test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out", [1, 2, 0]),
        ("===== 3 failed, 71 passed, 2 skipped, 1 warning in 1.56s =====", [71, 3, 2]),
        ("5 passed in 0.10s", [5, 0, 0]),
        ("1 passed, 1 xfailed, 2 errors in 90.10s (0:01:30)", [2, 2, 0]),
        ("no tests ran in 0.01s", None),
        ("FAILED tests/a.py::test_b - 3 passed in vain", None),
    ],
)
def test_closing_lines_are_counted(line, counts):
    assert steps.count_tests(line) == counts


def test_step_without_a_count_is_one_test(capfd):
    outcome = steps.run(steps.Step("fine", python("print('hello')")))
    assert (outcome.error, outcome.counts) == ("", [1, 0, 0])
    assert "hello\n" in capfd.readouterr().out
    assert steps.run(steps.Step("bad", python("raise SystemExit(3)"))).counts == [0, 1, 0]


def test_counts_of_one_step_add_up():
    line = "test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured"
    assert steps.run(steps.Step("cargo", python(f"print({line!r}); print({line!r})"))).counts == [4, 0, 2]


def test_step_that_fails_after_passing_tests_is_a_failure():
    outcome = steps.run(steps.Step("crash", python("print('3 passed in 0.1s'); raise SystemExit(9)")))
    assert (outcome.error, outcome.counts) == ("exit status 9", [3, 1, 0])


def test_environment_is_added_and_removed(monkeypatch):
    monkeypatch.setenv("STEPS_OLD", "1")
    code = "import os; raise SystemExit('STEPS_OLD' in os.environ or os.environ['STEPS_NEW'] != '2')"
    assert steps.run(steps.Step("env", python(code), {"STEPS_OLD": None, "STEPS_NEW": "2"})).error == ""


def test_step_that_hangs_is_ended():
    outcome = steps.run(steps.Step("hang", python("import time; time.sleep(60)"), limit_s=1))
    assert outcome.error == "ended after 1 s"
    assert outcome.seconds < 30


def test_what_needs_a_failed_step_is_not_run_and_the_rest_is():
    outcomes = steps.run_all(
        [
            steps.Step("build", python("raise SystemExit(1)")),
            steps.Step("tests", python("print('never')"), needs=("build",)),
            steps.Step("after", python("pass"), needs=("tests",)),
            steps.Step("lint", python("pass")),
        ]
    )
    assert [outcome.error for outcome in outcomes] == [
        "exit status 1",
        "not run: build failed",
        "not run: tests failed",
        "",
    ]
    assert steps.summary(outcomes).endswith("\n1 passed, 3 failed, 0 skipped")


def test_summary_times_every_step():
    outcomes = [
        steps.Outcome(steps.Step("build", ()), 61.25),
        steps.Outcome(steps.Step("pytest", ()), 5.0, "exit status 1", [7, 1, 2]),
    ]
    outcomes[0].counts = [1, 0, 0]
    assert steps.summary(outcomes).splitlines()[2:] == [
        "build      61.2 s  ok",
        "pytest      5.0 s  exit status 1  7 tests",
        "all        66.2 s",
        "8 passed, 1 failed, 2 skipped",
    ]


def test_every_group_has_steps_with_names_of_their_own():
    for group in ("develop", "lint", "test"):
        names = [step.name for step in steps.GROUPS[group]()]
        assert names
        assert len(names) == len(set(names))
        needed = {name for step in steps.GROUPS[group]() for name in step.needs}
        assert needed <= set(names)
