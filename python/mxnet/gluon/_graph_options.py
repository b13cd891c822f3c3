"""Options of `hybridize`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

__all__ = ["GraphOptions"]


@dataclass(frozen=True)
class GraphOptions:
    """Options of a block's graph; documented at `HybridBlock.hybridize`."""

    active: bool = False
    partition_if_dynamic: bool = True
    static_alloc: bool = False
    static_shape: bool = False
    inline_limit: int = 2
    forward_bulk_size: int | None = None
    backward_bulk_size: int | None = None
    dynamic: Any = None
    memory_budget: int | None = None
    backend: str | None = None

    @classmethod
    def checked(cls, block: str, active: bool, options: Mapping[str, Any]) -> GraphOptions:
        """Make options from what a caller gave.

        Parameters
        ----------
        block : str
            Name of the block's class, for messages.
        active : bool
        options : mapping of str to object

        Returns
        -------
        GraphOptions

        Raises
        ------
        TypeError
            If an option is unknown or no number where one is needed.
        ValueError
            If a number is negative, or `static_shape` is on without `static_alloc`.
        """
        known = [field.name for field in fields(cls) if field.name != "active"]
        for name, value in options.items():
            if name not in known:
                raise TypeError(f"{block}.hybridize: no option {name!r}; known are {', '.join(known)}")
            if name == "inline_limit" or (name.endswith(("_size", "_budget")) and value is not None):
                if not isinstance(value, int) or isinstance(value, bool):
                    raise TypeError(f"{block}.hybridize: `{name}` must be an integer, found {value!r}")
                if value < 0:
                    raise ValueError(f"{block}.hybridize: `{name}` must not be negative, found {value}")
        if options.get("static_shape") and not options.get("static_alloc"):
            raise ValueError(f"{block}.hybridize: `static_shape=True` needs `static_alloc=True`")
        return cls(bool(active), **options)
