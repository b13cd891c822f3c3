"""Every reader of files, and exchange, with a few damaged inputs of fixed seeds and with those that once did harm."""

import os
import random
import sys
import tempfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "soak"))
import fuzz  # noqa: E402  # beside the other attacks that take long

KEPT = sorted(path.name for path in fuzz.SEEDS.glob("*-*"))


@pytest.mark.parametrize("name", fuzz.TARGETS)
def test_seeds_are_read_and_damage_is_a_typed_error(name):
    rng = random.Random(f"{name} of the test")
    with tempfile.TemporaryDirectory() as folder:
        seeds = fuzz.TARGETS[name][0](folder)
        assert [fuzz.read(name, seed, os.path.join(folder, "whole")) for seed in seeds] == ["read"] * len(seeds)
        contents = [fuzz.mutated(rng.choice(seeds), rng) for _ in range(100)]
        assert fuzz.batch(name, contents, folder) == (100, "")


@pytest.mark.parametrize("kept", KEPT)
def test_inputs_that_once_did_harm(kept):
    with tempfile.TemporaryDirectory() as folder:
        assert fuzz.batch(kept.rsplit("-", 1)[0], [(fuzz.SEEDS / kept).read_bytes()], folder) == (1, "")
