"""Reading and writing JPEG and PNG: exact PNG, JPEG against Pillow, and damaged files."""

import io

import numpy as onp
import pytest

import mxnet as mx
from mxnet.image import _imencode

Image = pytest.importorskip("PIL.Image", reason="Pillow is the oracle")


def picture(height=60, width=80, channels=3):
    """Smooth colours with a little noise, as of a photograph."""
    rows, columns = onp.mgrid[:height, :width]
    waves = [onp.sin(rows / (9 + c)) + onp.cos(columns / (13 - c)) for c in range(channels)]
    noise = onp.random.RandomState(0).uniform(-4, 4, (height, width, channels))
    return onp.clip(onp.stack(waves, -1) * 50 + 128 + noise, 0, 255).astype("uint8")


def file_of(pixels, **options):
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, **options)
    return buffer.getvalue()


def pillow(data, mode=None):
    image = Image.open(io.BytesIO(data))
    return onp.asarray(image if mode is None else image.convert(mode)).astype(int)


def test_png_is_exact():
    pixels = picture()
    assert (mx.image.imdecode(file_of(pixels, format="PNG")).asnumpy() == pixels).all()


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_png_has_the_channels_that_are_stored(channels):
    pixels = picture(channels=channels)
    data = file_of(pixels[..., 0] if channels == 1 else pixels, format="PNG")
    assert (mx.image.imdecode(data, flag=-1).asnumpy() == pixels).all()
    assert (mx.image.imdecode(data).asnumpy() == (pixels[..., [0, 0, 0]] if channels == 1 else pixels[..., :3])).all()


def test_blue_first_is_the_reverse():
    data = file_of(picture(), format="PNG")
    assert (mx.image.imdecode(data, to_rgb=False).asnumpy() == picture()[..., ::-1]).all()


def test_grey_is_brightness():
    grey = mx.image.imdecode(file_of(picture(), format="PNG"), flag=0).asnumpy()
    exact = picture() @ onp.array([0.299, 0.587, 0.114])
    # Rounding to a level, and 14-bit weights: 0.5 + 255 * 3 * 2**-15.
    assert grey.shape == (60, 80, 1)
    assert onp.abs(grey[..., 0] - exact).max() <= 0.53


@pytest.mark.parametrize("subsampling", [0, 1, 2])
@pytest.mark.parametrize("progressive", [False, True])
def test_jpeg_is_near_to_pillow(subsampling, progressive):
    data = file_of(picture(), format="JPEG", quality=90, subsampling=subsampling, progressive=progressive)
    ours = mx.image.imdecode(data).asnumpy().astype(int)
    # ITU-T T.83 lets decoders differ by one level in each component; blue is 1.772 times one of them plus another,
    # rounded: up to 3 levels. Colours of half resolution are interpolated by different rules, which adds up to 3 here.
    limit = 3 if subsampling == 0 else 6
    assert onp.abs(ours - pillow(data)).max() <= limit


def test_grey_jpeg_is_near_to_pillow():
    data = file_of(picture(channels=1)[..., 0], format="JPEG", quality=90)
    ours = mx.image.imdecode(data, flag=-1)
    assert ours.shape == (60, 80, 1)
    assert onp.abs(ours.asnumpy()[..., 0].astype(int) - pillow(data)).max() <= 1


@pytest.mark.parametrize("quality", [50, 90, 100])
def test_written_jpeg_is_as_near_as_pillows(quality):
    pixels = picture()
    ours = onp.abs(pillow(_imencode(pixels, quality, ".jpg")) - pixels).mean()
    theirs = onp.abs(pillow(file_of(pixels, format="JPEG", quality=quality)) - pixels).mean()
    # Same tables; only transforms and the resolution of colours differ.
    assert ours <= 1.1 * theirs + 0.5


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_written_png_is_exact(channels):
    pixels = picture(channels=channels)
    found = pillow(_imencode(mx.np.array(pixels), 3, ".png"))
    assert (found.reshape(pixels.shape) == pixels).all()


def test_files_are_read(tmp_path):
    path = tmp_path / "picture.png"
    path.write_bytes(file_of(picture(), format="PNG"))
    assert (mx.image.imread(path).asnumpy() == picture()).all()
    with pytest.raises(FileNotFoundError, match="nowhere"):
        mx.image.imread(tmp_path / "nowhere.png")


@pytest.mark.parametrize("form", ["PNG", "JPEG"])
def test_truncated_files_are_errors(form):
    data = file_of(picture(), format=form)
    for part in (0, 1, 10, 100, len(data) // 2, len(data) - 40):
        with pytest.raises(mx.error.IOError, match=r"imdecode: .*(truncated|damaged|neither)"):
            mx.image.imdecode(data[:part])


def test_bad_arguments_are_named():
    data = file_of(picture(), format="PNG")
    with pytest.raises(ValueError, match=r"`flag` must be .* found 7"):
        mx.image.imdecode(data, flag=7)
    with pytest.raises(ValueError, match=r"`quality` must be from 1 to 100 .* found 101"):
        _imencode(picture(), 101, ".jpg")
    with pytest.raises(ValueError, match=r"`img_fmt` .* '.gif'"):
        _imencode(picture(), 90, ".gif")
    with pytest.raises(TypeError, match="uint8"):
        _imencode(mx.np.ones((2, 2, 3)), 90)
