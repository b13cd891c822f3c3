"""Batches of images of a record file, changed at random and normalised on threads."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as onp

from mxnet import _core
from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.base import DTypeLike, PathLike, dtype_name
from mxnet.error import FileFormatError
from mxnet.io._image_augmentation import Augmentation, Normalization
from mxnet.io.data_iter import DataDesc
from mxnet.io.file_iter import Batch, MXDataIter, _check
from mxnet.recordio import MXIndexedRecordIO, MXRecordIO, unpack

__all__ = ["ImageRecordIter"]

_FLAGS = {1: 0, 3: 1, 4: -1}  # how images are decoded, by the number of channels
_MIB = 1 << 20


class ImageRecordIter(MXDataIter):
    """Batches of the images of a record file, which `mxnet.recordio.pack_img` or ``im2rec`` made.

    Parameters
    ----------
    data_shape : tuple of int
        Channels (1, 3 or 4), height and width of the images of a batch.
    batch_size : int
    path_imglist : path
        A list of images whose labels are used instead of those of the records: lines of a number, labels and a name
        with tabs between.
    path_imgrec : path
        The record file.
    path_imgidx : path
        Its index. Without one the file is read through once to find the records.
    aug_seq : {"aug_default"}
        Which changes are made: those that follow.
    label_width : int
        Labels of an image. With 1 the labels of a batch have shape ``(batch_size,)``, else
        ``(batch_size, label_width)``.
    preprocess_threads : int
        Images that are prepared at a time.
    verbose : bool
        Log how many images there are.
    num_parts, part_index : int
        Take one of so many parts of the records, neighbours of nearly equal number.
    device_id : int
        Which of the devices `ctx`; -1 for the current one.
    shuffle_chunk_size : int
        Take neighbouring records of so many MiB together, these groups in a random order; 0 for no groups.
    shuffle_chunk_seed : int
        What the order of the groups follows from.
    seed_aug : int, optional
        What the random changes follow from; `seed` by default.
    shuffle : bool
        Take the records, or those of a group, in another random order in each run.
    seed : int
        What that order follows from.
    round_batch : bool
        A last batch that is not full is filled up with the first samples of the next run, which begins behind these;
        else it is filled with zeros. `getpad` says how many samples that are.
    prefetch_buffer : int
        How many batches are made ahead.
    ctx : {"cpu", "gpu", "cpu_pinned"}
        What the batches are for. They are made in ordinary memory of the host, whatever it says.
    dtype : dtype, optional
        Of the images, float32 by default; labels are float32.
    resize : int
        First resize images so that the shorter side has so many pixels, if positive.
    rand_crop : bool
        Cut out a rectangle anywhere, not in the middle.
    random_resized_crop : bool
        Cut out a rectangle of random area and ratio of the sides instead, and resize it.
    max_rotate_angle : int
        Rotate by up to this many degrees in both directions.
    max_aspect_ratio, min_aspect_ratio : float
        Width over height is changed by a factor between these; without the latter, by one from ``1 - max_aspect_ratio``
        to ``1 + max_aspect_ratio``. With `random_resized_crop` it is the ratio of the rectangle.
    max_shear_ratio : float
        Shear by up to this in both directions.
    max_crop_size, min_crop_size : int
        Cut out a square with a side between these and resize it; -1 to cut out a rectangle of the size of the batch.
    max_random_scale, min_random_scale : float
        Scale by a factor between these.
    max_random_area, min_random_area : float
        Part of the area that `random_resized_crop` takes.
    max_img_size, min_img_size : float
        Bounds of the sides after scaling.
    brightness, contrast, saturation : float
        Each is multiplied by a factor that is off 1 by up to this.
    pca_noise : float
        Standard deviation of noise along the principal components of the colours of ImageNet.
    random_h, random_s, random_l : int
        Change hue by up to so many steps of 2 degrees, saturation and lightness by up to so many of 255 levels.
    rotate : int
        Rotate by exactly this many degrees, if positive.
    fill_value : int
        Value of pixels outside the image after a rotation or padding.
    inter_method : int
        Interpolation of resizes as in `mxnet.image.imresize`; 10 is a random one. Rotation takes the nearest pixel with
        0, else interpolates linearly.
    pad : int
        Pixels added at each side before cutting.
    mirror, rand_mirror : bool
        Mirror all images left to right, or half of them.
    mean_img : path
        File with a mean image to subtract, ``"mean_img"`` of shape `data_shape`. If there is none it is computed from
        all images and written.
    mean_r, mean_g, mean_b, mean_a, std_r, std_g, std_b, std_a : float
        Means to subtract and deviations to divide by, of each channel; of grey images those of red.
    scale : float
        Factor of the result.
    max_random_contrast, max_random_illumination : float
        Multiply what is above the mean by a factor off 1 by up to the former, then add up to the latter.

    Raises
    ------
    OSError
        If a file cannot be opened.
    ValueError
        If an argument is out of range.
    FileFormatError
        If a file is something else; while reading: if a record has other labels or no image.

    Notes
    -----
    An image is resized, rotated, padded, cut out, coloured, mirrored and normalised, in this order. Images that are
    smaller than `data_shape` are enlarged before they are cut. Pixels are levels from 0 to 255 until they are
    normalised: ``((x - mean) * contrast + illumination) * scale / std``. The changes of an image follow from
    `seed_aug`, its number and the run, whatever the number of threads.

    Examples
    --------
    >>> import os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, 'images.rec')
    >>> with mx.recordio.MXRecordIO(path, 'w') as record:
    ...     for i in range(3):
    ...         picture = np.full((6, 8, 3), 10 * i, dtype='uint8')
    ...         record.write(mx.recordio.pack_img(mx.recordio.IRHeader(0, i, i, 0), picture, img_fmt='.png'))
    >>> batches = mx.io.ImageRecordIter((3, 4, 4), 2, path_imgrec=path, verbose=False)
    >>> [(x.shape, y.tolist()) for x, y in batches]
    [((2, 3, 4, 4), [0.0, 1.0]), ((2, 3, 4, 4), [2.0, 0.0])]
    >>> folder.cleanup()
    """

    def __init__(
        self,
        data_shape: Sequence[int],
        batch_size: int,
        path_imglist: PathLike = "",
        path_imgrec: PathLike = "",
        path_imgidx: PathLike = "",
        aug_seq: str = "aug_default",
        label_width: int = 1,
        preprocess_threads: int = 4,
        verbose: bool = True,
        num_parts: int = 1,
        part_index: int = 0,
        device_id: int = 0,
        shuffle_chunk_size: int = 0,
        shuffle_chunk_seed: int = 0,
        seed_aug: int | None = None,
        shuffle: bool = False,
        seed: int = 0,
        round_batch: bool = True,
        prefetch_buffer: int = 4,
        ctx: str = "gpu",
        dtype: DTypeLike | None = None,
        resize: int = -1,
        rand_crop: bool = False,
        random_resized_crop: bool = False,
        max_rotate_angle: int = 0,
        max_aspect_ratio: float = 0,
        min_aspect_ratio: float | None = None,
        max_shear_ratio: float = 0,
        max_crop_size: int = -1,
        min_crop_size: int = -1,
        max_random_scale: float = 1,
        min_random_scale: float = 1,
        max_random_area: float = 1,
        min_random_area: float = 1,
        max_img_size: float = 1e10,
        min_img_size: float = 0,
        brightness: float = 0,
        contrast: float = 0,
        saturation: float = 0,
        pca_noise: float = 0,
        random_h: int = 0,
        random_s: int = 0,
        random_l: int = 0,
        rotate: int = -1,
        fill_value: int = 255,
        inter_method: int = 1,
        pad: int = 0,
        mirror: bool = False,
        rand_mirror: bool = False,
        mean_img: PathLike = "",
        mean_r: float = 0,
        mean_g: float = 0,
        mean_b: float = 0,
        mean_a: float = 0,
        std_r: float = 1,
        std_g: float = 1,
        std_b: float = 1,
        std_a: float = 1,
        scale: float = 1,
        max_random_contrast: float = 0,
        max_random_illumination: float = 0,
    ) -> None:
        _check("ImageRecordIter", batch_size, ctx, device_id)
        shape = tuple(data_shape)
        if len(shape) != 3 or shape[0] not in _FLAGS or min(shape) < 1:
            raise ValueError(
                f"ImageRecordIter: `data_shape` must be 1, 3 or 4 channels, height and width, found {shape}"
            )
        if aug_seq != "aug_default":
            raise ValueError(f"ImageRecordIter: `aug_seq` must be 'aug_default', found {aug_seq!r}")
        for name, value in (("label_width", label_width), ("preprocess_threads", preprocess_threads)):
            if value < 1:
                raise ValueError(f"ImageRecordIter: `{name}` must be at least 1, found {value}")
        at_least_0 = {
            "shuffle_chunk_size": shuffle_chunk_size,
            "shuffle_chunk_seed": shuffle_chunk_seed,
            "seed": seed,
            "seed_aug": 0 if seed_aug is None else seed_aug,
            "pad": pad,
            "max_rotate_angle": max_rotate_angle,
            "max_shear_ratio": max_shear_ratio,
            "brightness": brightness,
            "contrast": contrast,
            "saturation": saturation,
            "pca_noise": pca_noise,
            "random_h": random_h,
            "random_s": random_s,
            "random_l": random_l,
            "max_random_contrast": max_random_contrast,
            "max_random_illumination": max_random_illumination,
        }
        for name, number in at_least_0.items():
            if number < 0:
                raise ValueError(f"ImageRecordIter: `{name}` must be at least 0, found {number}")
        if not 0 <= part_index < num_parts:
            raise ValueError(
                f"ImageRecordIter: `part_index` must be from 0 to `num_parts` - 1 ({num_parts - 1}), found {part_index}"
            )
        # Grey images have the numbers of red.
        mean = onp.array([mean_r, mean_g, mean_b, mean_a][: shape[0]], "float32")
        std = onp.array([std_r, std_g, std_b, std_a][: shape[0]], "float32")
        if not std.all():
            raise ValueError(f"ImageRecordIter: deviations must not be 0, found {std.tolist()}")
        augmentation = Augmentation(
            data_shape=(shape[0], shape[1], shape[2]),
            resize=resize,
            rand_crop=rand_crop,
            random_resized_crop=random_resized_crop,
            max_rotate_angle=max_rotate_angle,
            max_aspect_ratio=max_aspect_ratio,
            min_aspect_ratio=min_aspect_ratio,
            max_shear_ratio=max_shear_ratio,
            max_crop_size=max_crop_size,
            min_crop_size=min_crop_size,
            max_random_scale=max_random_scale,
            min_random_scale=min_random_scale,
            max_random_area=max_random_area,
            min_random_area=min_random_area,
            max_img_size=max_img_size,
            min_img_size=min_img_size,
            brightness=brightness,
            contrast=contrast,
            saturation=saturation,
            pca_noise=pca_noise,
            random_h=random_h,
            random_s=random_s,
            random_l=random_l,
            rotate=rotate,
            fill_value=fill_value,
            inter_method=inter_method,
            pad=pad,
        )
        records = _Records(path_imgrec, path_imgidx, num_parts, part_index, shuffle_chunk_size * _MIB)
        if verbose:
            logging.getLogger(__name__).info("%s: %d images", path_imgrec, len(records.positions))
        labels = _read_list(path_imglist) if path_imglist else None
        samples = _Samples(records, labels, label_width, augmentation, seed if seed_aug is None else seed_aug)
        threads = ThreadPoolExecutor(preprocess_threads, "ImageRecordIter")
        if mean_img:
            mean = _mean_image(mean_img, samples, threads)
        normalization = Normalization(
            mirror, rand_mirror, mean, std, scale, max_random_contrast, max_random_illumination
        )
        source = _ImageSource(
            samples,
            normalization,
            threads,
            batch_size,
            round_batch,
            (seed if shuffle else None, shuffle_chunk_seed),
            "float32" if dtype is None else dtype_name(dtype),
        )
        super().__init__(source, prefetch_buffer=prefetch_buffer)

    @property
    def provide_label(self) -> list[DataDesc]:
        return [DataDesc(self.label_name, (self.batch_size, *self.handle.label_shape), "float32")]

    def getlabel(self) -> Any:
        return np.array(self._current()[1], dtype="float32")


class _Records:
    """The records of a part of a file, found by their positions; threads may read at once."""

    def __init__(self, path: PathLike, index: PathLike, num_parts: int, part_index: int, chunk_bytes: int) -> None:
        self.path = os.fspath(path)
        self._file: MXRecordIO
        if index:
            indexed = MXIndexedRecordIO(index, path, "r")
            found = [indexed.idx[key] for key in indexed.keys]
            self._file = indexed
        else:
            self._file = MXRecordIO(path, "r")
            found = []
            while True:
                position = self._file.tell()
                if self._file.read() is None:
                    break
                found.append(position)
        if not found:
            raise FileFormatError(f"{self.path}: there are no records")
        self.positions = onp.array_split(onp.array(found), num_parts)[part_index]
        if not len(self.positions):
            raise ValueError(
                f"ImageRecordIter: `num_parts` must be at most the number of records ({len(found)}), found {num_parts}"
            )
        # The group of a record, by where it begins in the file.
        self.chunks = self.positions // chunk_bytes if chunk_bytes else None

    def order(self, epoch: int, seed: int | None, chunk_seed: int) -> onp.ndarray[Any, Any]:
        """Numbers of the records in the order of a run, random if there is a seed."""
        order = onp.arange(len(self.positions))
        if seed is not None:
            order = onp.random.default_rng([seed, epoch]).permutation(order)
        if self.chunks is not None:
            chunks, group = onp.unique(self.chunks, return_inverse=True)
            rank = onp.random.default_rng([chunk_seed, epoch]).permutation(len(chunks))
            order = order[onp.argsort(rank[group[order]], kind="stable")]
        return order

    def read(self, number: int) -> tuple[Any, bytes]:
        """Header and encoded image of a record."""
        data, _ = self._file._read_at(int(self.positions[number]))
        if data is None:
            raise FileFormatError(f"{self.path}: there is no record at byte {self.positions[number]}")
        return unpack(data)


class _Samples:
    """Images and labels of records, changed at random."""

    def __init__(
        self,
        records: _Records,
        labels: dict[int, list[float]] | None,
        label_width: int,
        augmentation: Augmentation,
        seed: int,
    ) -> None:
        self.records = records
        self.label_width = label_width
        self.augmentation = augmentation
        self._labels = labels
        self._seed = seed

    def get(self, epoch: int, number: int) -> tuple[Any, Any, onp.random.Generator]:
        """Image (h, w, c) and labels of a record, and what its further random numbers come from."""
        header, data = self.records.read(number)
        record_text = f"{self.records.path}: record {number} (id {header.id})"
        if self._labels is None:
            label = onp.atleast_1d(onp.asarray(header.label, "float32"))
        elif header.id in self._labels:
            label = onp.array(self._labels[header.id], "float32")
        else:
            raise FileFormatError(f"{record_text} is not in the list of images")
        if len(label) != self.label_width:
            raise FileFormatError(f"{record_text} has {len(label)} labels, but `label_width` is {self.label_width}")
        channels = self.augmentation.data_shape[0]
        try:
            pixels = _core.image_decode("ImageRecordIter", data, _FLAGS[channels], True).asnumpy()
        except OSError as error:
            error.add_note(f"in {record_text}")
            raise
        if pixels.shape[2] != channels:
            raise FileFormatError(f"{record_text} has {pixels.shape[2]} channels, but `data_shape` asks for {channels}")
        rng = onp.random.default_rng([self._seed, epoch, number])
        return self.augmentation(pixels, rng), label, rng


class _ImageSource:
    """Batches of samples in the order of the records, or a random one."""

    def __init__(
        self,
        samples: _Samples,
        normalization: Normalization,
        threads: ThreadPoolExecutor,
        batch_size: int,
        round_batch: bool,
        seeds: tuple[int | None, int],
        dtype: str,
    ) -> None:
        self.batch_size = batch_size
        self.data_shape: tuple[int, ...] = samples.augmentation.data_shape
        self.label_shape: tuple[int, ...] = () if samples.label_width == 1 else (samples.label_width,)
        self.dtype = dtype
        self._samples = samples
        self._normalization = normalization
        self._threads = threads
        self._round_batch = round_batch
        self._seeds = seeds
        self._begin(0, 0)

    def _begin(self, epoch: int, position: int) -> None:
        """Begin a run at a position in an order, or in a later one if that is so far."""
        num_samples = len(self._samples.records.positions)
        self._first = self._epoch, self._position = epoch + position // num_samples, position % num_samples
        self._order = self._samples.records.order(self._epoch, *self._seeds)
        self._is_over = False

    def __len__(self) -> int:
        return math.ceil((len(self._order) - self._first[1]) / self.batch_size)

    def reset(self, is_at_end: bool) -> None:
        if is_at_end and self._epoch > self._first[0]:
            self._begin(self._epoch, self._position)
        else:
            self._begin(self._first[0] + 1, 0)

    def read(self) -> Batch | None:
        if self._is_over:
            return None
        chosen: list[tuple[int, int]] = []
        pad = 0
        while len(chosen) < self.batch_size:
            if self._position == len(self._order):
                self._is_over = True
                if not self._round_batch:
                    break
                self._epoch, self._position = self._epoch + 1, 0
                self._order = self._samples.records.order(self._epoch, *self._seeds)
            chosen.append((self._epoch, int(self._order[self._position])))
            self._position += 1
            pad += self._is_over
        self._is_over |= self._position == len(self._order)
        made = list(self._threads.map(self._make, chosen))
        dtype = onp.dtype("float32" if self.dtype == "bfloat16" else self.dtype)
        data = onp.zeros((self.batch_size, *self.data_shape), dtype)
        labels = onp.zeros((self.batch_size, self._samples.label_width), "float32")
        for i, (image, label) in enumerate(made):
            data[i] = image if dtype.kind == "f" else onp.rint(image)
            labels[i] = label
        pad = pad or self.batch_size - len(made)
        return data, labels.reshape(-1, *self.label_shape), onp.array([number for _, number in chosen]), pad

    def _make(self, sample: tuple[int, int]) -> tuple[Any, Any]:
        image, label, rng = self._samples.get(*sample)
        return self._normalization(image, rng), label


def _read_list(path: PathLike) -> dict[int, list[float]]:
    """Labels by the number of the image."""
    found = {}
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                key, *labels, _ = line.rstrip("\n").split("\t")
                found[int(key)] = [float(label) for label in labels]
            except ValueError:
                raise FileFormatError(
                    f"{os.fspath(path)}: line {number} must be a number, labels and a name with tabs between, found "
                    f"{line[:80]!r}"
                ) from None
    return found


def _mean_image(path: PathLike, samples: _Samples, threads: ThreadPoolExecutor) -> Any:
    """The mean image (h, w, c) of a file, which is made if it is not there."""
    shape = samples.augmentation.data_shape
    if not os.path.exists(path):
        total = onp.zeros((*shape[1:], shape[0]))
        numbers = range(len(samples.records.positions))
        for image, _, _ in threads.map(lambda number: samples.get(0, number), numbers):
            total += image
        mean = (total / len(numbers)).transpose(2, 0, 1)
        npx.save(path, {"mean_img": np.array(mean, dtype="float32")})
    found = npx.load(path)
    if not isinstance(found, dict) or "mean_img" not in found or found["mean_img"].shape != shape:
        raise FileFormatError(f"{os.fspath(path)}: an array `mean_img` of shape {shape} is needed")
    return found["mean_img"].asnumpy().transpose(1, 2, 0)
