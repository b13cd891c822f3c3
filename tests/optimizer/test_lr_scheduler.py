"""Schedules at their corners."""

import math

import pytest

from mxnet import lr_scheduler as schedules


def test_factor_falls_every_so_many_updates_and_stops():
    schedule = schedules.FactorScheduler(step=3, factor=0.1, stop_factor_lr=0.05, base_lr=1.0)
    found = [schedule(update) for update in range(1, 12)]
    assert found == pytest.approx([1, 1, 1, 0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05, 0.05])


def test_multi_factor_falls_after_each_given_update():
    schedule = schedules.MultiFactorScheduler(step=[2, 5], factor=0.5, base_lr=1.0)
    assert [schedule(update) for update in range(1, 8)] == [1, 1, 0.5, 0.5, 0.5, 0.25, 0.25]


def test_multi_factor_may_be_asked_late():
    assert schedules.MultiFactorScheduler(step=[2, 5], factor=0.5, base_lr=1.0)(100) == 0.25


@pytest.mark.parametrize(
    ("schedule", "middle"),
    [
        (schedules.PolyScheduler(100, base_lr=1.0, pwr=2, final_lr=0.2), 0.2 + 0.8 * 0.25),
        (schedules.CosineScheduler(100, base_lr=1.0, final_lr=0.2), 0.6),
    ],
)
def test_decay_begins_and_ends_where_it_should(schedule, middle):
    assert schedule(0) == 1.0
    assert schedule(50) == pytest.approx(middle, rel=1e-12)
    assert schedule(100) == schedule(1000) == pytest.approx(0.2, rel=1e-12)


def test_cosine_is_a_cosine():
    schedule = schedules.CosineScheduler(30, base_lr=2.0)
    assert schedule(10) == pytest.approx(1 + math.cos(math.pi / 3), rel=1e-12)


@pytest.mark.parametrize(("mode", "expected"), [("linear", [0.1, 0.4, 0.7, 1.0]), ("constant", [0.1, 0.1, 0.1, 1.0])])
def test_warm_up(mode, expected):
    schedule = schedules.CosineScheduler(100, base_lr=1.0, warmup_steps=3, warmup_begin_lr=0.1, warmup_mode=mode)
    assert [schedule(update) for update in range(4)] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("klass", "arguments", "message"),
    [
        (schedules.FactorScheduler, {"step": 0}, "`step` must be at least 1, found 0"),
        (schedules.FactorScheduler, {"step": 1, "factor": 2}, "at most 1"),
        (schedules.MultiFactorScheduler, {"step": [3, 3]}, "rising"),
        (schedules.MultiFactorScheduler, {"step": []}, "rising"),
        (schedules.CosineScheduler, {"max_update": 5, "warmup_steps": 5}, "exceed `warmup_steps`"),
        (schedules.CosineScheduler, {"max_update": 1.5}, "whole number, found 1.5"),
        (schedules.PolyScheduler, {"max_update": 5, "warmup_mode": "slow"}, "'slow'"),
        (schedules.PolyScheduler, {"max_update": 5, "warmup_begin_lr": 1.0}, "must not exceed"),
    ],
)
def test_senseless_arguments_are_refused(klass, arguments, message):
    with pytest.raises(ValueError, match=message):
        klass(**arguments)


def test_the_exponent_can_be_read():
    assert schedules.PolyScheduler(9, pwr=3).power == 3
