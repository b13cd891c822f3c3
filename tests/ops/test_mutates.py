"""Operators that change their arguments: none writes to what is read-only."""

import numpy as np
import pytest

from mxnet import _core, autograd
from probing import ENTRIES, Maker, array_parameters, names, op

CHANGING = names(lambda entry: entry["mutates"])


def read_only(x):
    """A view of `x` that cannot be written to."""
    view = x[...]
    view.flags.writeable = False
    return view


def overlapping(x):
    """A view of the shape of `x` whose elements share memory."""
    return op("broadcast_to")(x[(slice(0, 1),) * x.ndim], x.shape)


@pytest.mark.parametrize("locked", [read_only, overlapping])
@pytest.mark.parametrize("name", CHANGING)
def test_arguments_that_would_change_must_be_writable(name, locked):
    entry = ENTRIES[name]
    order = [parameter for parameter, _, _ in entry["params"]]
    for call in entry["calls"]:
        for parameter in entry["mutates"]:
            args, kwargs = Maker(name, call, ours=True).arguments()
            given = dict(zip(order, args, strict=False)) | kwargs
            argument = given[parameter]
            items = argument if isinstance(argument, list) else [argument]
            if items[0] is None:
                continue
            locked_items = [locked(items[0]), *items[1:]]
            given[parameter] = locked_items if isinstance(argument, list) else locked_items[0]
            arrays = [x for value in given.values() for x in (value if isinstance(value, list) else [value])]
            arrays = [x for x in arrays if isinstance(x, _core.ndarray)]
            before = [x.asnumpy().copy() for x in arrays]
            with autograd.train_mode(), pytest.raises(ValueError, match="is read-only"):
                op(name)(**given)
            assert all(np.array_equal(x.asnumpy(), y) for x, y in zip(arrays, before, strict=True))


def test_every_operator_that_changes_arguments_is_known():
    assert {"batch_norm", "apply_at", "fused_adam"} <= set(CHANGING)
    for name in CHANGING:
        assert set(ENTRIES[name]["mutates"]) <= {
            p for p, kind, _ in ENTRIES[name]["params"] if kind.startswith("array")
        }
        assert array_parameters(ENTRIES[name]) or ENTRIES[name]["calls"]
