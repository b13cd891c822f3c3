"""Loaders of images, and of images with rectangles, from record files and lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as onp

from mxnet import numpy as np
from mxnet.base import DTypeLike, PathLike, dtype_name
from mxnet.gluon.block import Block
from mxnet.gluon.contrib.data.vision.transforms import bbox
from mxnet.gluon.data import DataLoader
from mxnet.gluon.data.batchify import Group, Pad, Stack
from mxnet.gluon.data.dataset import Dataset
from mxnet.gluon.data.vision import ImageListDataset, ImageRecordDataset, transforms
from mxnet.gluon.nn import Sequential
from mxnet.numpy import ndarray

__all__ = [
    "BboxLabelTransform",
    "ImageBboxDataLoader",
    "ImageDataLoader",
    "create_bbox_augment",
    "create_image_augment",
]

# Of the images of ImageNet, on the scale from 0 to 1.
_MEAN = (0.485, 0.456, 0.406)
_STD = (0.229, 0.224, 0.225)

_LABEL_DTYPES = ("int32", "float32", "int64", "float64")


def _interpolation(inter_method: int) -> int:
    return int(np.random.randint(0, 5)) if inter_method == 10 else inter_method


def _size(name: str, data_shape: Sequence[int]) -> tuple[int, int]:
    """Width and height."""
    if len(data_shape) != 3 or data_shape[0] != 3:
        raise ValueError(f"{name}: `data_shape` must be (3, height, width), found {tuple(data_shape)}")
    return data_shape[2], data_shape[1]


def _check(name: str, amounts: dict[str, float], probabilities: dict[str, float]) -> None:
    for argument, value in amounts.items():
        if not value >= 0:
            raise ValueError(f"{name}: `{argument}` must be at least 0, found {value}")
    for argument, value in probabilities.items():
        if not 0 <= value <= 1:
            raise ValueError(f"{name}: `{argument}` must be from 0 to 1, found {value}")


def _colors(
    brightness: float, contrast: float, saturation: float, hue: float, pca_noise: float, rand_gray: float
) -> list[Block]:
    """Random changes of colours, on float32."""
    blocks: list[Block] = []
    if brightness or contrast or saturation or hue:
        blocks.append(transforms.RandomColorJitter(brightness, contrast, saturation, hue))
    if pca_noise > 0:
        blocks.append(transforms.RandomLighting(pca_noise))
    if rand_gray > 0:
        blocks.append(transforms.RandomGray(rand_gray))
    return [transforms.Cast(), *blocks] if blocks else []


def _to_arrays(mean: Any, std: Any, dtype: DTypeLike) -> list[Block]:
    """Transforms from image to normalised (c, h, w) array."""
    blocks: list[Block] = [transforms.ToTensor()]
    if mean is not None or std is not None:
        blocks.append(
            transforms.Normalize(
                _MEAN if mean is True else 0.0 if mean is None else mean,
                _STD if std is True else 1.0 if std is None else std,
            )
        )
    if dtype_name(dtype) != "float32":
        blocks.append(transforms.Cast(dtype_name(dtype)))
    return blocks


def create_image_augment(
    data_shape: Sequence[int],
    resize: int = 0,
    rand_crop: bool = False,
    rand_resize: bool = False,
    rand_mirror: bool = False,
    mean: Any = None,
    std: Any = None,
    brightness: float = 0,
    contrast: float = 0,
    saturation: float = 0,
    hue: float = 0,
    pca_noise: float = 0,
    rand_gray: float = 0,
    inter_method: int = 2,
    dtype: DTypeLike = "float32",
) -> transforms.Compose:
    """A chain of transforms from an image of any size to an array of a shape.

    Parameters
    ----------
    data_shape : (int, int, int)
        3, height and width of the result.
    resize : int
        First resize images so that the shorter side has so many pixels, if positive.
    rand_crop : bool
        Cut out a rectangle anywhere, not in the middle.
    rand_resize : bool
        Cut out one of random area and ratio and resize it; needs `rand_crop`.
    rand_mirror : bool
        Mirror half of the images left to right.
    mean, std : sequence of float, float or True, optional
        Numbers to subtract and to divide by, on the scale from 0 to 1; True for those of ImageNet.
    brightness, contrast, saturation, hue : float
        See `RandomColorJitter`.
    pca_noise : float
        See `RandomLighting`.
    rand_gray : float
        Probability that an image gets grey.
    inter_method : int
        See `mx.image.imresize`; 10 chooses a random one, once.
    dtype : dtype
        Of the result.

    Returns
    -------
    Compose

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> augment = mx.gluon.contrib.data.vision.create_image_augment((3, 4, 6), rand_mirror=True, mean=True, std=True)
    >>> augment(np.zeros((40, 60, 3), dtype='uint8')).shape
    (3, 4, 6)
    """
    size = _size("create_image_augment", data_shape)
    _check("create_image_augment", {"resize": resize, "pca_noise": pca_noise}, {"rand_gray": rand_gray})
    if rand_resize and not rand_crop:
        raise ValueError("create_image_augment: `rand_resize` needs `rand_crop=True`")
    interp = _interpolation(inter_method)
    blocks: list[Block] = []
    if resize > 0:
        blocks.append(transforms.Resize(resize, keep_ratio=True, interpolation=interp))
    if rand_resize:
        blocks.append(transforms.RandomResizedCrop(size, interpolation=interp))
    elif rand_crop:
        blocks.append(transforms.RandomCrop(size, interpolation=interp))
    else:
        blocks.append(transforms.CenterCrop(size, interpolation=interp))
    if rand_mirror:
        blocks.append(transforms.RandomFlipLeftRight(0.5))
    blocks += _colors(brightness, contrast, saturation, hue, pca_noise, rand_gray)
    return transforms.Compose([*blocks, *_to_arrays(mean, std, dtype)])


def create_bbox_augment(
    data_shape: Sequence[int],
    rand_crop: float = 0,
    rand_pad: float = 0,
    rand_gray: float = 0,
    rand_mirror: bool = False,
    mean: Any = None,
    std: Any = None,
    brightness: float = 0,
    contrast: float = 0,
    saturation: float = 0,
    pca_noise: float = 0,
    hue: float = 0,
    inter_method: int = 2,
    max_aspect_ratio: float = 2,
    area_range: tuple[float, float] = (0.3, 3.0),
    max_attempts: int = 50,
    pad_val: float | Sequence[float] = (127, 127, 127),
    dtype: DTypeLike = "float32",
) -> transforms.Compose:
    """A chain of transforms of an image with rectangles to an array of a shape with rectangles.

    Parameters
    ----------
    data_shape : (int, int, int)
        3, height and width of the image that results.
    rand_crop, rand_pad, rand_gray : float
        Probabilities to cut out a part, to put the image into a larger one, and to make it grey.
    rand_mirror : bool
        Mirror half of the images left to right.
    mean, std, brightness, contrast, saturation, pca_noise, hue, inter_method, dtype
        See `create_image_augment`.
    max_aspect_ratio : float
        Of the sides of a part.
    area_range : (float, float)
        The least scale of a part, and the largest ratio of the sides of the larger image.
    max_attempts : int
        Parts that are tried.
    pad_val : float or sequence of float
        Levels of what is put around the image.

    Returns
    -------
    Compose
        It takes and returns an image (h, w, c) and rectangles (n, 4 or more), in pixels.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> augment = mx.gluon.contrib.data.vision.dataloader.create_bbox_augment((3, 8, 6))
    >>> image, boxes = augment(np.zeros((4, 6, 3), dtype='uint8'), np.array([[0, 1, 2, 3, 7]]))
    >>> image.shape, boxes.tolist()
    ((3, 8, 6), [[0, 2, 2, 6, 7]])
    """
    width, height = _size("create_bbox_augment", data_shape)
    probabilities = {"rand_crop": rand_crop, "rand_pad": rand_pad, "rand_gray": rand_gray}
    _check("create_bbox_augment", {"pca_noise": pca_noise}, probabilities)
    interp = _interpolation(inter_method)
    blocks: list[Block] = []
    if rand_crop > 0:
        blocks.append(
            bbox.ImageBboxRandomCropWithConstraints(
                p=rand_crop, min_scale=area_range[0], max_aspect_ratio=max_aspect_ratio, max_trial=max_attempts
            )
        )
    if rand_mirror:
        blocks.append(bbox.ImageBboxRandomFlipLeftRight(0.5))
    if rand_pad > 0:
        blocks.append(bbox.ImageBboxRandomExpand(p=rand_pad, max_ratio=area_range[1], fill=pad_val))
    blocks.append(bbox.ImageBboxResize(width, height, interp=interp))
    blocks += _colors(brightness, contrast, saturation, hue, pca_noise, rand_gray)
    return transforms.Compose([*blocks, *_to_arrays(mean, std, dtype)])


class BboxLabelTransform(Block):
    """Converts the label of an image from the form in record files and lists to one row for each bounding box.

    Parameters
    ----------
    coord_normalized : bool
        Whether coordinates in the label are parts of the width and height.

    Examples
    --------
    >>> label = mx.gluon.contrib.data.vision.dataloader.BboxLabelTransform()
    >>> label(np.zeros((10, 20, 3)), np.array([2, 5, 7, 0, 0.5, 0.25, 1]))[1]
    array([[ 0.,  5.,  5., 10.,  7.]], dtype=float32)
    """

    _takes_numpy = True

    def __init__(self, coord_normalized: bool = True) -> None:
        super().__init__()
        self._coord_normalized = coord_normalized

    def forward(self, img: Any, label: Any) -> tuple[Any, onp.ndarray]:
        """The image as it is, and rectangles in pixels.

        Parameters
        ----------
        img : array_like, shape (h, w, c)
        label : array_like
            Length of the heading (at least 2), numbers of each rectangle (at least 5), the rest of the heading; then
            for each rectangle class, xmin, ymin, xmax, ymax and further numbers.

        Returns
        -------
        (array_like, numpy.ndarray of shape (n, 5 or more))
            Rows ``(xmin, ymin, xmax, ymax, class, ...)``, float32.

        Raises
        ------
        ValueError
            If the label is of another form.
        """
        numbers = (label.asnumpy() if isinstance(label, ndarray) else onp.asarray(label)).astype("float32").ravel()
        are_lengths = numbers.size > 1 and all(float(x).is_integer() for x in numbers[:2])
        heading, width = map(int, numbers[:2]) if are_lengths else (0, 0)
        rest = numbers.size - heading
        if heading < 2 or width < 5 or rest < width or rest % width:
            raise ValueError(
                "BboxLabelTransform: a label must be the length of its heading (an integer of at least 2), how many "
                "numbers each rectangle has (an integer of at least 5), and behind the heading at least one whole "
                "rectangle; found "
                f"{numbers.size} numbers {numbers[:8].tolist()}"
            )
        rows = numbers[heading:].reshape(-1, width)
        rows = onp.concatenate([rows[:, 1:5], rows[:, :1], rows[:, 5:]], axis=1)
        if self._coord_normalized:
            rows[:, :4] *= onp.array([img.shape[1], img.shape[0]] * 2, dtype="float32")
        return img, rows


class CastLabels:
    """A `batchify_fn` that gives the labels of another one a dtype.

    Parameters
    ----------
    function : callable of a list of samples
        Must return a pair of images and labels.
    dtype : str
    name : str
        Name of the loader, for errors.
    """

    def __init__(self, function: Callable[..., Any], dtype: str, name: str) -> None:
        self._function, self._dtype, self._name = function, dtype, name

    def __call__(self, samples: Sequence[Any]) -> Any:
        """Make a batch of samples.

        Parameters
        ----------
        samples : list of tuple

        Returns
        -------
        list
            Images and labels.

        Raises
        ------
        TypeError
            If the function returns something else than a pair, or labels that are no array.
        """
        batch = self._function(samples)
        if not isinstance(batch, list | tuple) or len(batch) != 2:
            found = f"{len(batch)} parts" if isinstance(batch, list | tuple) else type(batch).__name__
            raise TypeError(f"{self._name}: `batchify_fn` must return a pair of images and labels, found {found}")
        if not hasattr(batch[1], "astype"):
            raise TypeError(
                f"{self._name}: `batchify_fn` must return labels as an array, found {type(batch[1]).__name__}"
            )
        return _with_labels(batch, self._dtype)


def _with_labels(batch: Any, dtype: str) -> Any:
    data, label = batch
    return [data, label.astype(dtype)]


# Arguments of both loaders that name the images, and those of `DataLoader`.
_SOURCES = ("path_imgrec", "path_imglist", "path_root", "imglist", "num_parts", "part_index")
_OPTIONS = (
    "batch_size", "shuffle", "sampler", "last_batch", "batch_sampler", "num_workers", "pin_memory", "pin_device_id",
    "prefetch", "thread_pool", "timeout", "try_nopython",
)  # fmt: skip


class _ImageLoader(DataLoader):
    """What both loaders do with their arguments.

    `given` holds the arguments of the loader by name. `augment` makes the chain of transforms of `data_shape` and
    other arguments, `transformed` applies it to the images.
    """

    def __init__(
        self,
        given: dict[str, Any],
        augment: Callable[..., Block],
        transformed: Callable[[Dataset, Block], Dataset],
        batchify_fn: Callable[..., Any] | None,
    ) -> None:
        name, dtype = type(self).__name__, given["dtype"]
        chain = _chain(name, given["aug_list"], augment, given["data_shape"], given["kwargs"])
        images = _images(name, *(given[key] for key in _SOURCES))
        if dtype_name(dtype) not in _LABEL_DTYPES:
            raise ValueError(f"{name}: `dtype` must be one of {_LABEL_DTYPES}, found {dtype!r}")
        # Batches that are stacked by default may be made whole, in one call; their labels are changed behind that.
        self._label_dtype = dtype_name(dtype) if batchify_fn is None else None
        if batchify_fn is not None:
            batchify_fn = CastLabels(batchify_fn, dtype_name(dtype), name)
        options = {key: given[key] for key in _OPTIONS}
        super().__init__(transformed(images, chain), batchify_fn=batchify_fn, **options)

    def __iter__(self) -> Iterator[Any]:
        batches = super().__iter__()
        if self._label_dtype is None:
            return batches
        dtype = self._label_dtype
        return (_with_labels(batch, dtype) for batch in batches)


def _images(
    name: str, path_imgrec: Any, path_imglist: Any, path_root: PathLike, imglist: Any, num_parts: int, part_index: int
) -> Dataset:
    """The images of a record file or a list, or one part of them."""
    given = [what for what in (path_imgrec, path_imglist, imglist) if what is not None]
    if len(given) != 1:
        raise ValueError(
            f"{name}: one of `path_imgrec`, `path_imglist` and `imglist` must be given, found {len(given)}"
        )
    if not 0 <= part_index < num_parts:
        raise ValueError(
            f"{name}: `part_index` must be from 0 to `num_parts` - 1 ({num_parts - 1}), found {part_index}"
        )
    dataset: Dataset = ImageListDataset(path_root, given[0]) if path_imgrec is None else ImageRecordDataset(path_imgrec)
    return dataset.shard(num_parts, part_index) if num_parts != 1 else dataset


def _chain(name: str, aug_list: Any, make: Callable[..., Block], data_shape: Sequence[int], kwargs: Any) -> Block:
    """The transforms that are given, or those that are made of arguments."""
    _size(name, data_shape)
    if aug_list is None:
        return make(data_shape, **kwargs)
    if kwargs:
        raise ValueError(f"{name}: `aug_list` excludes {sorted(kwargs)}")
    blocks = [aug_list] if isinstance(aug_list, Block) else aug_list
    if not isinstance(blocks, list | tuple) or not all(isinstance(block, Block) for block in blocks):
        raise TypeError(f"{name}: `aug_list` must be a Block or a list of Blocks, found {aug_list!r}")
    return aug_list if isinstance(aug_list, Block) else transforms.Compose(blocks)


class ImageDataLoader(_ImageLoader):
    """Loads batches of images of a record file or a list, with random transforms.

    Parameters
    ----------
    batch_size : int
    data_shape : (int, int, int)
        3, height and width of the images of a batch.
    path_imgrec : path, optional
        A record file; see `ImageRecordDataset`.
    path_imglist : path, optional
        A text file below `path_root`; see `ImageListDataset`.
    path_root : path
        Folder that paths of lists start from.
    part_index, num_parts : int
        Take one of so many parts of the images.
    aug_list : Block or list of Block, optional
        Transforms of an image, instead of those of `create_image_augment`.
    imglist : list, optional
        Entries of a label, or labels, and a path.
    dtype : {"float32", "float64", "int32", "int64"}
        Of the labels.
    shuffle, sampler, last_batch, batch_sampler, batchify_fn, num_workers, pin_memory, pin_device_id, prefetch, \
thread_pool, timeout, try_nopython
        See `mx.gluon.data.DataLoader`. `batchify_fn` must return a pair of images and labels, the latter an array.
    **kwargs
        Arguments of `create_image_augment`.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    TypeError
        If `aug_list` is something else.
    ValueError
        If not exactly one of the three sources is given, or an argument is out of range.

    Notes
    -----
    A batch is a list of images, float32 of shape ``(n, 3, h, w)``, and labels. With resizing, cuts in the middle,
    mirroring and normalisation alone, whole batches are decoded and changed on the engine's threads.

    Examples
    --------
    >>> import os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with open(os.path.join(folder.name, '1.png'), 'wb') as file:
    ...     written = file.write(mx.image._imencode(np.zeros((9, 8, 3), dtype='uint8'), 3, '.png'))
    >>> loader = mx.gluon.contrib.data.vision.ImageDataLoader(2, (3, 4, 6), path_root=folder.name,
    ...                                                       imglist=[[0, '1.png'], [5, '1.png']], mean=True)
    >>> [(images.shape, labels.tolist()) for images, labels in loader]
    [((2, 3, 4, 6), [0.0, 5.0])]
    >>> folder.cleanup()
    """

    def __init__(
        self,
        batch_size: int | None,
        data_shape: Sequence[int],
        path_imgrec: PathLike | None = None,
        path_imglist: PathLike | None = None,
        path_root: PathLike = ".",
        part_index: int = 0,
        num_parts: int = 1,
        aug_list: Any = None,
        imglist: list[Sequence[Any]] | None = None,
        dtype: str = "float32",
        shuffle: bool = False,
        sampler: Any = None,
        last_batch: str | None = None,
        batch_sampler: Any = None,
        batchify_fn: Callable[..., Any] | None = None,
        num_workers: int = 0,
        pin_memory: bool = False,
        pin_device_id: int = 0,
        prefetch: int | None = None,
        thread_pool: bool = False,
        timeout: float = 120,
        try_nopython: bool | None = None,
        **kwargs: Any,
    ) -> None:
        given = locals()
        super().__init__(given, create_image_augment, lambda images, chain: images.transform_first(chain), batchify_fn)


class ImageBboxDataLoader(_ImageLoader):
    """Loads batches of images with bounding boxes of a record file or a list, with random transforms.

    Parameters
    ----------
    batch_size, data_shape, path_imgrec, path_imglist, path_root, part_index, num_parts, imglist
        See `ImageDataLoader`. A label has the form that `BboxLabelTransform` takes.
    aug_list : Block or list of Block, optional
        Transforms of an image and its rectangles, instead of those of `create_bbox_augment`.
    coord_normalized : bool
        Whether coordinates in labels are parts of the width and height.
    dtype : {"float32", "float64", "int32", "int64"}
        Of the rectangles.
    shuffle, sampler, last_batch, batch_sampler, batchify_fn, num_workers, pin_memory, pin_device_id, prefetch, \
thread_pool, timeout, try_nopython
        See `mx.gluon.data.DataLoader`. By default images are stacked, and rectangles filled up with rows of -1;
        another `batchify_fn` must return a pair of images and rectangles, the latter an array.
    **kwargs
        Arguments of `create_bbox_augment`.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    TypeError
        If `aug_list` is something else.
    ValueError
        If not exactly one of the three sources is given, or an argument is out of range.

    Notes
    -----
    A batch is a list of images, float32 of shape ``(n, 3, h, w)``, and rectangles ``(n, most, 5 or more)`` with rows
    ``(xmin, ymin, xmax, ymax, class, ...)`` in pixels of these images.

    Examples
    --------
    >>> import os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with open(os.path.join(folder.name, '1.png'), 'wb') as file:
    ...     written = file.write(mx.image._imencode(np.zeros((9, 8, 3), dtype='uint8'), 3, '.png'))
    >>> entry = [[2, 5, 7, 0.5, 0, 1, 0.5], '1.png']  # a rectangle of class 7: the right half of the upper half
    >>> loader = mx.gluon.contrib.data.vision.ImageBboxDataLoader(1, (3, 4, 6), path_root=folder.name, imglist=[entry])
    >>> [(images.shape, boxes.tolist()) for images, boxes in loader]
    [((1, 3, 4, 6), [[[3.0, 0.0, 6.0, 2.0, 7.0]]])]
    >>> folder.cleanup()
    """

    def __init__(
        self,
        batch_size: int | None,
        data_shape: Sequence[int],
        path_imgrec: PathLike | None = None,
        path_imglist: PathLike | None = None,
        path_root: PathLike = ".",
        part_index: int = 0,
        num_parts: int = 1,
        aug_list: Any = None,
        imglist: list[Sequence[Any]] | None = None,
        coord_normalized: bool = True,
        dtype: str = "float32",
        shuffle: bool = False,
        sampler: Any = None,
        last_batch: str | None = None,
        batch_sampler: Any = None,
        batchify_fn: Callable[..., Any] | None = None,
        num_workers: int = 0,
        pin_memory: bool = False,
        pin_device_id: int = 0,
        prefetch: int | None = None,
        thread_pool: bool = False,
        timeout: float = 120,
        try_nopython: bool | None = None,
        **kwargs: Any,
    ) -> None:
        given = locals()

        def transformed(images: Dataset, chain: Block) -> Dataset:
            both = Sequential()
            both.add(BboxLabelTransform(coord_normalized), chain)
            return images.transform(both)

        super().__init__(given, create_bbox_augment, transformed, batchify_fn or Group(Stack(), Pad(val=-1)))
