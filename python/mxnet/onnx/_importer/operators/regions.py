"""Regions of images: pooling in them, and choosing among overlapping boxes."""

from __future__ import annotations

from typing import Any

from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.base import dtype_name
from mxnet.onnx._importer.table import Call, operator

_ROI_MODES = ("half_pixel", "output_half_pixel")


@operator("RoiAlign")
def roi_align(call: Call, x: Any, regions: Any, images: Any) -> Any:
    if call.choice("mode", "avg", "max") == "max":
        raise call.unsupported("regions are pooled by means, not by maxima: use mode 'avg'")
    rows = np.concatenate([np.expand_dims(images, 1).astype(regions.dtype), regions], axis=1)
    return npx.roi_align(
        x,
        rows,
        (call["output_height"], call["output_width"]),
        call["spatial_scale"],
        sample_ratio=call["sampling_ratio"] or -1,
        aligned=call.choice("coordinate_transformation_mode", *_ROI_MODES, default=_ROI_MODES[1]) == _ROI_MODES[0],
    )


@operator("MaxRoiPool")
def max_roi_pool(call: Call, x: Any, regions: Any) -> Any:
    return npx.roi_pooling(x, regions, tuple(call["pooled_shape"]), call["spatial_scale"])


@operator("NonMaxSuppression", host=(2, 3, 4))
def non_max_suppression(
    call: Call, boxes: Any, scores: Any, most: Any = None, overlap: Any = None, least: Any = None
) -> Any:
    """Rows (image, class, box) of the boxes that remain, those of a class by descending score."""
    num_images, num_classes, num_boxes = scores.shape
    count = 0 if most is None else int(most.reshape(()))
    dtype = dtype_name(boxes.dtype)
    if not count or not num_boxes:
        return np.zeros((0, 3), dtype="int64")
    is_centre = bool(call["center_point_box"])
    if not is_centre:
        # Corners may be given in any order.
        first, second = boxes[..., :2], boxes[..., 2:]
        boxes = np.concatenate([np.minimum(first, second), np.maximum(first, second)], axis=-1)
    numbers = np.broadcast_to(np.arange(num_boxes, dtype=dtype), scores.shape)
    corners = np.broadcast_to(np.expand_dims(boxes, 1), (num_images, num_classes, num_boxes, 4))
    rows = np.concatenate([np.stack([scores, numbers], axis=-1), corners], axis=-1)
    kept = npx.box_nms(
        rows,
        overlap_thresh=0.0 if overlap is None else float(overlap.reshape(())),
        valid_thresh=-3e38 if least is None else float(least.reshape(())),
        coord_start=2,
        score_index=0,
        in_format="center" if is_centre else "corner",
    )[:, :, :count]
    found = kept[..., 1] >= 0
    where = np.stack(np.nonzero(found)[:2], axis=1)
    return np.concatenate([where, np.expand_dims(kept[..., 1][found].astype("int64"), 1)], axis=1)


@operator("ImageDecoder")
def image_decoder(call: Call, content: Any) -> Any:
    """Pixels, (h, w, channels), of a JPEG or PNG file."""
    formats = {"RGB": (1, True), "BGR": (1, False), "Grayscale": (0, True)}
    flag, to_rgb = formats[call.choice("pixel_format", *formats)]
    return npx.image.imdecode(content, flag, to_rgb)
