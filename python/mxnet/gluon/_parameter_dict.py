"""The dictionary of parameters that blocks return."""

from __future__ import annotations

from typing import Any

from mxnet.gluon.parameter import Parameter

__all__ = ["ParameterDict"]

# Methods that the class of the same name had in MXNet 1.x, and what does their work.
_REMOVED = {
    "get_constant": "assign a `mx.gluon.Constant` to an attribute of the block",
    "initialize": "call `Block.initialize`",
    "list_ctx": "call `Parameter.list_device` of each",
    "load": "call `Block.load_parameters`",
    "load_dict": "call `Block.load_dict`",
    "prefix": "parameters are named by the attributes of blocks",
    "reset_ctx": "call `Block.reset_device`",
    "save": "call `Block.save_parameters`",
    "setattr": "call `Block.setattr`",
    "zero_grad": "call `Block.zero_grad`",
}


class ParameterDict(dict[str, Parameter]):
    """Parameters by name: a dictionary whose errors name what replaced the methods that it had in MXNet 1.x.

    Examples
    --------
    >>> net = mx.gluon.nn.Dense(2, in_units=3)
    >>> net.collect_params()
    {'weight': Parameter (shape=(2, 3), dtype=float32), 'bias': Parameter (shape=(2,), dtype=float32)}
    >>> net.collect_params().setattr('lr_mult', 0.1)
    Traceback (most recent call last):
        ...
    AttributeError: parameters are in a dictionary, which has no attribute 'setattr': call `Block.setattr`
    """

    def __getattr__(self, name: str) -> Any:
        if name in _REMOVED:
            raise AttributeError(
                f"parameters are in a dictionary, which has no attribute {name!r}: {_REMOVED[name]}",
                name=name,
                obj=self,
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def get(self, key: str, default: Any = None, **made: Any) -> Any:
        """The parameter of a name.

        Parameters
        ----------
        key : str
        default : object, optional
            What is returned if there is none.

        Returns
        -------
        Parameter
            Or `default`.

        Raises
        ------
        TypeError
            If there are further arguments, with which MXNet 1.x made a parameter.
        """
        if made:
            raise TypeError(
                f"params.get makes no parameters: write `self.{key} = mx.gluon.Parameter({key!r}, ...)`, with the "
                f"arguments {sorted(made)}"
            )
        return dict.get(self, key, default)
