"""The settings of the process: `mx.config`."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from mxnet import _core
from mxnet._atomic_file import write_atomically

__all__ = ["Config", "Setting", "config"]

Value = bool | int | str


class Setting(NamedTuple):
    """A setting as `mx.config.settings()` lists it."""

    name: str
    value: Value
    origin: str  # 'default', 'environment', 'file' or 'program'
    type: str
    values: str  # allowed values
    variable: str  # environment variable
    doc: str


class Config:
    """The settings of the process. Each is an attribute, which can be read and set at any time.

    A variable ``MXNET_<NAME>`` of the environment gives a setting its first value.

    Examples
    --------
    >>> mx.config.engine_mode
    'adaptive'
    >>> with mx.config(engine_mode='sync'):
    ...     mx.config.engine_mode
    'sync'
    >>> mx.config.engine_mode
    'adaptive'
    """

    __slots__ = ()

    def get(self, name: str) -> Value:
        """The value of a setting.

        Parameters
        ----------
        name : str

        Returns
        -------
        bool, int or str

        Raises
        ------
        ValueError
            If there is no such setting.
        """
        value: Value = _core.config_get(name)[0]
        return value

    def set(self, name: str, value: Value) -> None:
        """Give a setting a value.

        Parameters
        ----------
        name : str
        value : bool, int or str

        Raises
        ------
        ValueError
            If there is no such setting, or it does not take the value.
        mxnet.error.UnsupportedError
            If the value names a library that is not on this machine; the message says how to install it.
        """
        _core.config_set(name, value, "program")

    def origin(self, name: str) -> str:
        """Where the value of a setting comes from.

        Parameters
        ----------
        name : str

        Returns
        -------
        str
            'default', 'environment', 'file' or 'program'.

        Raises
        ------
        ValueError
            If there is no such setting.
        """
        origin: str = _core.config_get(name)[1]
        return origin

    def settings(self) -> list[Setting]:
        """All settings.

        Returns
        -------
        list of Setting

        Examples
        --------
        >>> [setting.variable for setting in mx.config.settings()][:2]
        ['MXNET_ENGINE_MODE', 'MXNET_NUM_THREADS']
        """
        found = []
        for name, doc, kind, values, variable in _core.config_keys():
            value, origin = _core.config_get(name)
            found.append(Setting(name, value, origin, kind, values, variable, doc))
        return found

    def save(self, path: str | Path) -> None:
        """Write the settings that were changed, by the program, a file or the environment, to a TOML file.

        Parameters
        ----------
        path : path
        """
        lines = ["[mxnet]"]
        for setting in self.settings():
            if setting.origin != "default":
                # Booleans, integers and text are written alike in JSON and TOML, but for DEL, which TOML escapes.
                shown = json.dumps(setting.value, ensure_ascii=False).replace("\x7f", "\\u007f")
                lines.append(f"{setting.name} = {shown}")
        text = "\n".join(lines) + "\n"

        def write(temporary: str) -> None:
            Path(temporary).write_text(text, encoding="utf-8")

        write_atomically(path, write)

    def load(self, path: str | Path) -> None:
        """Take the settings of the table ``[mxnet]`` of a TOML file.

        Parameters
        ----------
        path : path

        Raises
        ------
        ValueError
            If it is no TOML file, a name is no setting, or a setting does not take its value; nothing has
            changed then.
        mxnet.error.UnsupportedError
            If a setting names a library that is not on this machine; nothing has changed then.
        """
        _core.check_file(path)
        with Path(path).open("rb") as file:
            found = tomllib.load(file).get("mxnet", {})
        if not isinstance(found, dict):
            raise ValueError(f"load: `mxnet` in {str(path)!r} must be a table of settings, not {found!r}")
        before = {name: _core.config_get(name) for name in found}
        try:
            for name, value in found.items():
                _core.config_set(name, value, "file")
        except (ValueError, _core.UnsupportedError):
            for name, (value, origin) in before.items():
                _core.config_set(name, value, origin)
            raise

    @contextmanager
    def __call__(self, **values: Value) -> Iterator[Config]:
        """Other values inside a ``with`` block.

        Parameters
        ----------
        **values : bool, int or str
            Settings by name.
        """
        before = {name: _core.config_get(name) for name in values}
        try:
            for name, value in values.items():
                self.set(name, value)
            yield self
        finally:
            for name, (value, origin) in before.items():
                _core.config_set(name, value, origin)

    def __getattr__(self, name: str) -> Value:
        if name.startswith("_") or not any(name == known for known, *_ in _core.config_keys()):
            raise AttributeError(f"there is no setting {name!r}; there are {', '.join(self._names())}")
        return self.get(name)

    def __setattr__(self, name: str, value: Value) -> None:
        self.set(name, value)

    def _names(self) -> list[str]:
        return [name for name, *_ in _core.config_keys()]

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._names()})

    def __repr__(self) -> str:
        rows = [f"  {x.name} = {x.value!r}  ({x.origin})" for x in self.settings()]
        return "\n".join(["mx.config", *rows])


config = Config()
