"""Datasets, samplers, batch builders and the loader."""

import threading

import numpy as onp
import pytest

import mxnet as mx
from mxnet.gluon import data
from mxnet.gluon.data import batchify
from mxnet.gluon.data.vision import Digits, transforms


def test_array_dataset_pairs_entries():
    dataset = data.ArrayDataset(mx.np.array([[1.0], [2.0]]), mx.np.array([3, 4]))
    x, y = dataset[1]
    assert (x.asnumpy().tolist(), int(y), len(dataset)) == ([2.0], 4, 2)
    with pytest.raises(ValueError, match=r"\[1, 2\]"):
        data.ArrayDataset([1], [1, 2])


def test_derived_datasets():
    dataset = data.SimpleDataset(list(range(10)))
    assert list(dataset.filter(lambda x: x % 3 == 0)) == [0, 3, 6, 9]
    assert [list(dataset.shard(3, index)) for index in range(3)] == [[0, 1, 2, 3], [4, 5, 6], [7, 8, 9]]
    assert list(dataset.take(3)) == [0, 1, 2]
    assert list(dataset.take(None)) == list(dataset.take(99)) == list(range(10))
    assert list(dataset.sample(data.SequentialSampler(2, start=4))) == [4, 5]
    assert list(dataset.transform(lambda x: 2 * x)) == list(range(0, 20, 2))
    pairs = data.ArrayDataset([1, 2], [3, 4])
    assert list(pairs.transform(lambda x, y: x * y)) == [3, 8]
    assert list(pairs.transform_first(lambda x: -x, lazy=False)) == [(-1, 3), (-2, 4)]
    with pytest.raises(ValueError, match="found 3"):
        dataset.shard(3, 3)


def test_random_sampler_is_a_permutation_that_follows_the_seed():
    sampler = data.RandomSampler(50)
    mx.random.seed(3)
    first, second = list(sampler), list(sampler)
    mx.random.seed(3)
    assert list(sampler) == first != second
    assert sorted(first) == list(range(50))


@pytest.mark.parametrize(
    ("last", "runs"),
    [
        ("keep", [[[0, 1], [2, 3], [4]]] * 2),
        ("discard", [[[0, 1], [2, 3]]] * 2),
        ("rollover", [[[0, 1], [2, 3]], [[4, 0], [1, 2], [3, 4]]]),
    ],
)
def test_last_batch(last, runs):
    sampler = data.BatchSampler(data.SequentialSampler(5), 2, last)
    for expected in runs:
        assert len(sampler) == len(expected)
        assert list(sampler) == expected


def test_pad_fills_up():
    batch = batchify.Pad(val=-1, round_to=4)([onp.ones((1, 2)), onp.ones((3, 1))])
    assert batch.shape == (2, 4, 4)
    assert (batch.asnumpy() == -1).sum() == 32 - 5
    assert batchify.Pad(dtype="int32")([[1, 2], [3]]).dtype == onp.int32


def test_stack_refuses_different_shapes():
    with pytest.raises(ValueError, match=r"\[\(1,\), \(2,\)\]; use Pad"):
        batchify.Stack()([[1], [2, 3]])


def test_group_builds_each_place():
    for make in (batchify.Stack, batchify.Pad, batchify.Append):
        assert repr(make(use_shared_mem=True)) == repr(make())
    x, y = batchify.Group(batchify.Pad(), batchify.Stack())([([1, 2], 0), ([3], 1)])
    assert x.asnumpy().tolist() == [[1, 2], [3, 0]]
    assert y.asnumpy().tolist() == [0, 1]
    with pytest.raises(ValueError, match="2 builders for a sample of 3 places"):
        batchify.Group(batchify.Pad(), batchify.Stack())([(1, 2, 3)])


def test_shuffled_order_does_not_depend_on_workers():
    def run(num_workers):
        mx.random.seed(11)
        loader = data.DataLoader(list(range(20)), 3, shuffle=True, num_workers=num_workers)
        return [batch.asnumpy().tolist() for batch in loader]

    assert run(0) == run(2) != [list(range(start, min(start + 3, 20))) for start in range(0, 20, 3)]


def workers():
    return [thread for thread in threading.enumerate() if thread.name.startswith("DataLoader")]


def test_leaving_early_ends_the_threads():
    for number, _ in enumerate(data.DataLoader(list(range(1000)), 2, num_workers=3, thread_pool=True)):
        if number == 1:
            assert len(workers()) == 3
            break
    assert workers() == []


def test_prefetch_bounds_what_is_loaded_ahead():
    loaded = []

    class Counting(data.Dataset):
        def __len__(self):
            return 100

        def __getitem__(self, idx):
            loaded.append(idx)
            return idx

    batches = iter(data.DataLoader(Counting(), 1, num_workers=2, prefetch=3, thread_pool=True))
    next(batches)
    batches.close()
    assert len(loaded) <= 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "`batch_size` is needed"),
        ({"batch_size": 1, "shuffle": True, "sampler": [0]}, "excludes"),
        ({"batch_size": 1, "batch_sampler": [[0]]}, "excludes"),
        ({"batch_size": 1, "num_workers": -1}, "at least 0, found -1"),
        ({"batch_size": 0}, "at least 1, found 0"),
        ({"batch_size": 1, "timeout": 0}, "positive"),
        ({"batch_size": 1, "pin_device_id": 99}, "`pin_device_id` must be from 0 to .*, found 99"),
        ({"batch_size": 1, "try_nopython": True}, "`try_nopython` is True, but list"),
    ],
)
def test_senseless_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        data.DataLoader([1, 2], **arguments)


def test_pinned_memory_is_for_the_host_alone():
    (batch,) = data.DataLoader([1, 2], 2, pin_memory=True)
    assert batch.asnumpy().tolist() == [1, 2]
    with mx.gpu(0), pytest.raises(ValueError, match=r"`pin_memory` must be False on gpu\(0\)"):
        data.DataLoader([1, 2], 2, pin_memory=True)


def test_digits_are_split_once_and_for_all():
    train, test = Digits(train=True), Digits(train=False)
    assert (len(train), len(test)) == (1437, 360)
    seen = {train[i][0].tobytes() + bytes([train[i][1]]) for i in range(len(train))}
    both = seen & {test[i][0].tobytes() + bytes([test[i][1]]) for i in range(len(test))}
    assert not both
    counts = onp.bincount([int(label) for _, label in test])
    # Each digit is a tenth of the whole, so a tenth of the test digits, but for rounding and for uneven classes.
    assert counts.min() >= 34
    assert counts.max() <= 37
    assert [int(test[i][1]) for i in range(5)] == [int(label) for _, label in test.take(5)]


def test_transforms_of_images():
    image = onp.array([[[0, 255], [51, 102]]], dtype="uint8")
    steps = transforms.Compose([transforms.ToTensor(), transforms.Normalize([0.0, 1.0], [1.0, 0.5])])
    assert steps(image).asnumpy().ravel().tolist() == pytest.approx([0, 0.2, 0, -1.2], abs=1e-6)
    assert steps(image).shape == (2, 1, 2)
    assert transforms.ToTensor()(image[None]).shape == (1, 2, 1, 2)
    assert transforms.Cast("float64")(image).dtype == onp.float64
    with pytest.raises(ValueError, match=r"found shape \(2,\)"):
        transforms.ToTensor()(mx.np.ones((2,)))


def test_hybridized_random_transforms_draw_the_numbers_of_their_samples():
    images = onp.arange(8 * 6 * 6 * 3, dtype="uint8").reshape(8, 6, 6, 3)
    batches = []
    for options in ({}, {"hybrid": True}, {"hybrid": True, "num_workers": 2, "thread_pool": True}):
        augment = transforms.HybridCompose(
            [transforms.RandomCrop(4), transforms.RandomFlipLeftRight(), transforms.RandomBrightness(0.5)]
        )
        if options.pop("hybrid", False):
            augment.hybridize()
        mx.random.seed(9)
        loader = data.DataLoader(data.ArrayDataset(images, onp.arange(8)).transform_first(augment), 4, **options)
        batches.append([x.asnumpy() for x, _ in loader])
    for found in batches[1:]:
        for batch, expected in zip(found, batches[0], strict=True):
            onp.testing.assert_array_equal(batch, expected)
    assert (batches[0][0][0] != batches[0][0][1]).any()
