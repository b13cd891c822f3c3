"""Batches taken as a whole equal the stacked samples bit for bit, and are taken only where that is so."""

import numpy as onp
import pytest

import mxnet as mx
from mxnet.gluon import data
from mxnet.gluon.data import batchify
from mxnet.gluon.data.vision import Digits, transforms

IMAGES = onp.random.default_rng(5).integers(0, 256, (12, 4, 5, 3)).astype("uint8")
FLOATS = onp.random.default_rng(6).normal(size=(12, 3, 4, 5))
LABELS = onp.arange(12)
STEPS = transforms.Compose(
    [transforms.ToTensor(), transforms.Normalize((0.1, 0.2, 0.3), (0.5, 0.6, 0.7)), transforms.Cast("float16")]
)
HYBRID = transforms.HybridCompose([transforms.ToTensor(), transforms.Normalize(0.5, 0.25)])

WHOLE = {
    "one array of NumPy": data.SimpleDataset(FLOATS),
    "one array of ours": data.SimpleDataset(mx.np.array(FLOATS)),
    "labels of NumPy": data.ArrayDataset(LABELS),
    "labels of ours": data.SimpleDataset(mx.np.array(LABELS, dtype="int32")),
    "bfloat16": data.SimpleDataset(mx.np.array(FLOATS).astype("bfloat16")),
    "pairs": data.ArrayDataset(IMAGES, LABELS),
    "pairs of ours": data.ArrayDataset(mx.np.array(IMAGES), mx.np.array(LABELS)),
    "datasets side by side": data.ArrayDataset(data.SimpleDataset(FLOATS).take(12), LABELS),
    "parts of parts": data.ArrayDataset(IMAGES, LABELS).shard(2, 1).sample([5, 0, 0, 3]).take(3),
    "transformed": data.ArrayDataset(IMAGES, LABELS).transform_first(STEPS),
    "transformed array of ours": data.ArrayDataset(mx.np.array(IMAGES), LABELS).transform_first(STEPS),
    "transformed single": data.SimpleDataset(IMAGES).transform(HYBRID).transform_first(transforms.Cast("float64")),
    "transformed part": data.ArrayDataset(FLOATS.astype("float32"), LABELS).take(7).transform_first(transforms.Cast()),
}


class Doubled(data.ArrayDataset):
    """Changes the samples of its base."""

    def __getitem__(self, idx):
        return 2 * super().__getitem__(idx)


class Shifted(transforms.Normalize):
    """Changes what its base computes."""

    def forward(self, x):
        return super().forward(x) + x.ndim


SINGLE = {
    "a list": data.SimpleDataset([1, 2, 3]),
    "a function": data.SimpleDataset(FLOATS).transform(lambda x: x.sum()),
    "a function among transforms": data.SimpleDataset(IMAGES).transform(
        transforms.Compose([transforms.ToTensor(), lambda x: x.sum()])
    ),
    "a subclass of a dataset": Doubled(LABELS),
    "a subclass of a transform": data.SimpleDataset(mx.np.array(FLOATS)).transform(Shifted(0.5, 0.5)),
    "objects": data.SimpleDataset(onp.array([1, 2, 3], dtype=object)),
    "a transform of both parts": data.ArrayDataset(FLOATS, LABELS).transform(transforms.Cast()),
    "its own samples": Digits(train=False),
}


def batches(dataset, **options):
    found = []
    for batch in data.DataLoader(dataset, 2, **options):
        parts = batch if isinstance(batch, list | tuple) else [batch]
        found.append((type(batch), [(part.dtype, part.shape, part.tobytes()) for part in parts]))
    return found


@pytest.mark.parametrize("name", WHOLE)
def test_whole_batches_equal_stacked_samples(name):
    expected = batches(WHOLE[name], try_nopython=False)
    assert batches(WHOLE[name], try_nopython=True) == expected
    assert batches(WHOLE[name]) == expected


def test_whole_batches_of_processes():
    name = "transformed array of ours"
    assert batches(WHOLE[name], try_nopython=True, num_workers=1) == batches(WHOLE[name], try_nopython=False)


@pytest.mark.parametrize("name", SINGLE)
def test_other_samples_are_taken_one_by_one(name):
    with pytest.raises(ValueError, match="`try_nopython` is True, but"):
        data.DataLoader(SINGLE[name], 2, try_nopython=True)
    if name != "objects":  # which make no batch either way
        assert batches(SINGLE[name]) == batches(SINGLE[name], try_nopython=False)


class OneMore(batchify.Stack):
    def __call__(self, data):
        return super().__call__(data) + 1


@pytest.mark.parametrize(
    ("dataset", "builder", "is_whole"),
    [
        ("one array of NumPy", batchify.Stack(), True),
        ("pairs", batchify.Group(batchify.Stack(), batchify.Stack()), True),
        ("pairs", batchify.Group(batchify.Stack(), batchify.Pad()), False),
        ("pairs", batchify.Stack(), False),
        ("one array of NumPy", OneMore(), False),
        ("one array of NumPy", batchify.Pad(), False),
    ],
)
def test_builders(dataset, builder, is_whole):
    options = {"batchify_fn": builder}
    if is_whole:
        expected = batches(WHOLE[dataset], try_nopython=False, **options)
        assert batches(WHOLE[dataset], try_nopython=True, **options) == expected
    else:
        with pytest.raises(ValueError, match="need a Python call for each sample"):
            data.DataLoader(WHOLE[dataset], 2, try_nopython=True, **options)


@pytest.mark.parametrize("dataset", [WHOLE["pairs"], WHOLE["pairs of ours"]])
def test_sample_that_does_not_exist_is_named(dataset):
    loader = data.DataLoader(dataset, batch_sampler=[[0, 1], [2, 40]])
    with pytest.raises(IndexError) as caught:
        list(loader)
    assert caught.value.__notes__ == ["while loading sample 40 of ArrayDataset"]
    negative = data.DataLoader(dataset, batch_sampler=[[-1, 0]])
    assert next(iter(negative))[1].tolist() == [11, 0]


@pytest.mark.parametrize("kind", [tuple, list, onp.array, lambda numbers: range(numbers[0], numbers[-1] + 1)])
@pytest.mark.parametrize("name", ["one array of NumPy", "one array of ours", "transformed", "parts of parts"])
def test_numbers_may_come_in_any_sequence(kind, name):
    sampler = [kind([0, 1]), kind([1, 2])]
    found = [
        [part.tolist() for part in (batch if isinstance(batch, list) else [batch])]
        for whole in (True, False)
        for batch in data.DataLoader(WHOLE[name], batch_sampler=sampler, try_nopython=whole)
    ]
    assert found[:2] == found[2:]


def test_group_refuses_other_numbers_of_places():
    builder = batchify.Group(batchify.Stack())
    with pytest.raises(ValueError, match="1 builders for a sample of 2 places"):
        list(data.DataLoader(WHOLE["pairs"], 2, batchify_fn=builder))
