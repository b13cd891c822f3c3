"""Stores of several processes: each program checks its results itself, on every rank."""

import re

import pytest

from ranks import launch, succeed


def finished(text):
    return sorted(re.findall(r"^rank (\d) is done$", text, re.MULTILINE))


def test_sums_of_three_ranks_have_the_bits_of_numpy_and_of_a_loop_if_compressed():
    assert finished(succeed(3, "sums.py")) == ["0", "1", "2"]


def test_ranks_that_disagree_get_an_error_and_go_on():
    text = succeed(2, "disagreements.py")
    assert finished(text) == ["0", "1"]
    assert "child of 0" in text
    assert "child of 1" in text


def test_training_on_two_ranks_is_training_on_the_joined_batch():
    assert finished(succeed(2, "training.py")) == ["0", "1"]


def test_asynchronous_training_converges_and_servers_answer_each_request():
    assert finished(succeed(3, "asynchronous.py")) == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("way", "said"),
    [
        (
            "error",
            "DistributedError: kvstore: rank 1 has ended while others do: pushpull of key 0.*ZeroDivisionError: ",
        ),
        ("asynchronous", "DistributedError: kvstore: rank 1 has ended.*ZeroDivisionError: of the second rank"),
        ("server", "DistributedError: kvstore: the server of rank 1 failed.*ZeroDivisionError"),
        ("import", "DistributedError: kvstore: rank 1 has ended while others do: create: dist_sync.*ModuleNotFound"),
        ("quiet", "DistributedError: kvstore: rank 1 has ended while others do: create: dist_sync"),
        ("kill", r"signal 9"),
        ("interrupt", "rank 1 was interrupted in an operation and ends all ranks"),
        ("interrupt all", "KeyboardInterrupt"),  # as Ctrl-C at the launcher
    ],
)
def test_a_rank_that_ends_ends_the_others(way, said):
    done = launch(2, "failures.py", way)
    assert done.returncode != 0
    assert re.search(said, done.stdout + done.stderr, re.DOTALL), done.stdout + done.stderr
