"""The installed package and the tables of the public API beside this file."""

from pathlib import Path

import pytest

import contract
import mxnet

FOLDER = Path(__file__).parent


@pytest.fixture(scope="module")
def report():
    return contract.report(mxnet, FOLDER)


@pytest.mark.parametrize("which", ["not_yet", "differs"])
def test_committed_list_is_what_the_package_shows(report, which):
    committed = (FOLDER / f"{which}.txt").read_text().splitlines()
    found = getattr(report, which)
    gone = sorted(set(committed) - set(found))
    new = sorted(set(found) - set(committed))
    assert found == committed, f"{which}.txt: no longer so: {gone}; not listed: {new}; `make gen` rewrites it"


def test_names_that_are_out_do_not_exist(report):
    assert report.leftover == []
