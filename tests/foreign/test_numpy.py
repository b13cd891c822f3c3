"""NumPy's own tests pass on mx.np, but for those that known_failures.txt lists with a reason.

The list is written for one version of NumPy. With another one, whose tests may be others, modules have to pass nearly
whole instead.
"""

import numpy
import pytest

import run

KNOWN = run.read_known()
SHARE = 0.9  # of a module's tests, with another version of NumPy


@pytest.mark.parametrize("module", run.MODULES)
@pytest.mark.timeout(1800)  # _core.multiarray has 13,000 tests
def test_numpys_own_tests_pass(module):
    outcome = run.run(module)
    assert not outcome.trouble, outcome.trouble
    passed = {f"{module}::{name}" for name in outcome.of("passed")}
    failed = {f"{module}::{name}": reason for name, reason in outcome.of("failed").items()}
    unexpected = {name: reason for name, reason in failed.items() if name not in KNOWN}
    lines = "\n".join(f"{name}\n    {reason}" for name, reason in unexpected.items())
    if numpy.__version__ != run.known_version():
        assert len(unexpected) <= (1 - SHARE) * (len(passed) + len(failed)), lines
        return
    assert not unexpected, lines
    fixed = sorted(name for name in passed & KNOWN.keys() if not run.may_pass(KNOWN[name]))
    assert not fixed, f"these pass now, take them out of {run.KNOWN.name}: {fixed}"


def test_every_known_failure_has_a_reason_and_a_module():
    assert [name for name, reason in KNOWN.items() if not reason] == []
    assert {name.split("::")[0] for name in KNOWN} <= run.MODULES.keys()


def test_list_says_for_which_version_of_numpy_it_is():
    assert len(run.known_version().split(".")) == 3
