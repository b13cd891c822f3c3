"""The image networks by name."""

from __future__ import annotations

from typing import Any

from mxnet.gluon.block import HybridBlock
from mxnet.gluon.model_zoo.vision import alexnet, densenet, inception, mobilenet, resnet, squeezenet, vgg

__all__ = ["MODELS", "get_model"]

MODELS = {
    "alexnet": alexnet.alexnet,
    **{f"densenet{depth}": getattr(densenet, f"densenet{depth}") for depth in (121, 161, 169, 201)},
    "inceptionv3": inception.inception_v3,
    **{
        f"mobilenet{infix}{width}": getattr(mobilenet, f"mobilenet{name}{width.replace('.', '_')}")
        for infix, name in (("", ""), ("v2_", "_v2_"))
        for width in ("1.0", "0.75", "0.5", "0.25")
    },
    "mobilenetv3_large": mobilenet.mobilenet_v3_large,
    "mobilenetv3_small": mobilenet.mobilenet_v3_small,
    **{
        f"resnet{depth}_v{version}": getattr(resnet, f"resnet{depth}_v{version}")
        for version in (1, 2)
        for depth in (18, 34, 50, 101, 152)
    },
    "squeezenet1.0": squeezenet.squeezenet1_0,
    "squeezenet1.1": squeezenet.squeezenet1_1,
    **{
        f"vgg{depth}{suffix}": getattr(vgg, f"vgg{depth}{suffix}")
        for suffix in ("", "_bn")
        for depth in (11, 13, 16, 19)
    },
}


def get_model(name: str, **kwargs: Any) -> HybridBlock:
    """A network by its name.

    Parameters
    ----------
    name : str
        Case does not matter. One of alexnet; densenet121, densenet161, densenet169, densenet201; inceptionv3;
        mobilenet1.0, mobilenet0.75, mobilenet0.5, mobilenet0.25 and the same with ``mobilenetv2_``; mobilenetv3_large,
        mobilenetv3_small; squeezenet1.0, squeezenet1.1; resnet18_v1, resnet34_v1, resnet50_v1, resnet101_v1,
        resnet152_v1 and the same with ``_v2``; vgg11, vgg13, vgg16, vgg19 and the same with ``_bn``.
    **kwargs
        Arguments of the function of that name: `pretrained`, `device`, `root`, `classes` and others.

    Returns
    -------
    HybridBlock

    Raises
    ------
    ValueError
        If there is no network of that name.
    FileNotFoundError
        If `pretrained` and there is no file of the weights.

    Notes
    -----
    ``pretrained=True`` reads ``<root>/<name>.safetensors``, else ``<name>.params`` as MXNet 1.x and 2.x wrote it, else
    the only file ``<name>-<hash>.params`` with 8 hexadecimal digits as older programs named it. Nothing is downloaded.

    Examples
    --------
    >>> net = mx.gluon.model_zoo.vision.get_model('resnet18_v1', classes=10)
    >>> net.output
    Dense(512 -> 10, linear)
    """
    found = MODELS.get(name.lower())
    if found is None:
        raise ValueError(f"get_model: `name` must be one of {', '.join(MODELS)}; found {name!r}")
    net: HybridBlock = found(**kwargs)
    return net
