"""Transforms as blocks: what they compute, what they hand on, and that hybridized ones give the same."""

import numpy as onp
import pytest

import mxnet as mx
from mxnet import np, npx

T = mx.gluon.data.vision.transforms


def pixels(*shape):
    return np.array(onp.random.RandomState(0).randint(0, 256, shape).astype("uint8"))


HYBRID = {
    "Cast": (T.Cast("float16"), (6, 8, 3)),
    "ToTensor": (T.ToTensor(), (3, 6, 8)),
    "Resize": (T.Resize((4, 5)), (5, 4, 3)),
    "ResizeRatio": (T.Resize(3, keep_ratio=True), (3, 4, 3)),
    "CenterCrop": (T.CenterCrop(4), (4, 4, 3)),
    "CenterCropLarger": (T.CenterCrop((10, 4)), (4, 10, 3)),
    "CropResize": (T.CropResize(1, 2, 3, 4, 5), (5, 5, 3)),
    "RandomCrop": (T.RandomCrop(6, pad=2, pad_value=7), (6, 6, 3)),
    "RandomResizedCrop": (T.RandomResizedCrop((3, 4)), (4, 3, 3)),
    "RandomFlipLeftRight": (T.RandomFlipLeftRight(), (6, 8, 3)),
    "RandomFlipTopBottom": (T.RandomFlipTopBottom(), (6, 8, 3)),
    "RandomBrightness": (T.RandomBrightness(0.5), (6, 8, 3)),
    "RandomContrast": (T.RandomContrast(0.5), (6, 8, 3)),
    "RandomSaturation": (T.RandomSaturation(0.5), (6, 8, 3)),
    "RandomHue": (T.RandomHue(0.5), (6, 8, 3)),
    "RandomColorJitter": (T.RandomColorJitter(0.5, 0.5, 0.5, 0.5), (6, 8, 3)),
    "RandomLighting": (T.RandomLighting(0.5), (6, 8, 3)),
    "RandomGray": (T.RandomGray(), (6, 8, 3)),
    "HybridRandomApply": (T.HybridRandomApply(T.RandomBrightness(0.5)), (6, 8, 3)),
    "Rotate": (T.HybridCompose([T.ToTensor(), T.Rotate(20, zoom_in=True)]), (3, 6, 8)),
    "RandomRotation": (
        T.HybridCompose([T.ToTensor(), T.RandomRotation((-20, 20), rotate_with_proba=0.5)]),
        (3, 6, 8),
    ),
    "HybridCompose": (T.HybridCompose([T.ToTensor(), T.Normalize(0.5, 0.25)]), (3, 6, 8)),
}


@pytest.mark.parametrize("name", HYBRID)
def test_hybridized_transforms_give_the_same(name):
    block, shape = HYBRID[name]
    x = pixels(6, 8, 3)
    for _ in range(3):
        mx.random.seed(5)
        eager = block(x)
        assert eager.shape == shape
        block.hybridize()
        mx.random.seed(5)
        assert (block(x).asnumpy() == eager.asnumpy()).all()
        block.hybridize(False)


@pytest.mark.parametrize("name", HYBRID)
def test_forward_reads_nothing_on_the_host(name):
    block, _ = HYBRID[name]
    x = pixels(6, 8, 3)
    block(x)
    before = mx._core.waits()
    block(x)
    assert mx._core.waits() == before


@pytest.mark.parametrize("name", ["ToTensor", "CenterCrop", "RandomHue", "RandomGray", "RandomResizedCrop"])
def test_labels_are_handed_on(name):
    image, label = HYBRID[name][0](pixels(6, 8, 3), 7)
    assert image.shape == HYBRID[name][1]
    assert label == 7


def test_compositions_are_their_parts():
    x = pixels(6, 8, 3)
    both = T.Compose([T.Resize(4), T.ToTensor(), T.Normalize((0.1, 0.2, 0.3), (0.4, 0.5, 0.6))])(x)
    alone = npx.image.normalize(npx.image.to_tensor(npx.image.resize(x, 4)), (0.1, 0.2, 0.3), (0.4, 0.5, 0.6))
    assert (both.asnumpy() == alone.asnumpy()).all()


def test_probabilities_of_zero_and_one_are_never_and_always():
    x = pixels(6, 8, 3)
    double = T.RandomApply([lambda image: image * 2], p=1)
    assert (double(x).asnumpy() == (x * 2).asnumpy()).all()
    for block in (T.RandomApply([lambda image: image * 2], p=0), T.HybridRandomApply(T.RandomBrightness(0.5), p=0)):
        assert (block(x).asnumpy() == x.asnumpy()).all()
    assert (T.RandomGray(0)(x).asnumpy() == x.asnumpy()).all()
    grey = T.RandomGray(1)(x).asnumpy()
    assert (grey == grey[..., :1]).all()


def test_ranges_follow_the_amounts():
    x = np.full((2, 2, 3), 100.0)
    values = [T.RandomBrightness(0.25)(x)[0, 0, 0].item() for _ in range(200)]
    assert 75 <= min(values) < 80
    assert 120 < max(values) <= 125


def test_rotations_turn_and_keep_with_a_probability():
    x = np.array(onp.random.RandomState(0).uniform(size=(3, 5, 5)), dtype="float32")
    onp.testing.assert_allclose(T.Rotate(90)(x).asnumpy(), onp.rot90(x.asnumpy(), 1, (1, 2)), atol=2e-6)
    assert (T.RandomRotation((80, 90), rotate_with_proba=0)(x).asnumpy() == x.asnumpy()).all()
    assert not (T.RandomRotation((80, 90))(x).asnumpy() == x.asnumpy()).all()


def test_bad_arguments_are_named():
    for make, words in [
        (lambda: T.Resize(0), "`size`"),
        (lambda: T.Resize(3, interpolation=7), "found 7"),
        (lambda: T.RandomCrop(3, pad=((1, 1), (1, 1))), "`pad`"),
        (lambda: T.RandomHue(-1), "`hue` must be at least 0, found -1"),
        (lambda: T.RandomGray(2), "found 2"),
        (lambda: T.Normalize(0, (1, 0)), "`std` must not be zero"),
        (lambda: T.RandomRotation((3, 1)), "`angle_limits`"),
        (lambda: T.Rotate(3, True, True), "exclude"),
        (lambda: T.HybridRandomApply(T.Resize(3), p=1)(pixels(6, 8, 3)), "must keep the shape"),
    ]:
        with pytest.raises(ValueError, match=words):
            make()
