"""The profiler: when operators run, for how long, on which thread, with how much memory.

Configure and start it, run something, and look at a table (`dumps`) or at the time line in a browser (`dump`):

>>> import pathlib, tempfile
>>> mx.profiler.set_config(profile_all=True, filename=pathlib.Path(tempfile.mkdtemp()) / 'profile.json')
>>> mx.profiler.set_state('run')
>>> x = np.ones((100, 100)) @ np.ones((100, 100))
>>> mx.profiler.set_state('stop')
>>> 'matmul' in mx.profiler.dumps(reset=True)
True
>>> mx.profiler.dump()
>>> mx.profiler.set_config()
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mxnet import _core
from mxnet._renamed import attribute_finder
from mxnet.error import UnsupportedError

__all__ = [
    "Counter",
    "Domain",
    "Event",
    "Frame",
    "Marker",
    "Task",
    "dump",
    "dumps",
    "pause",
    "resume",
    "scope",
    "set_config",
    "set_state",
]

__getattr__ = attribute_finder(__name__)

_PROFILES = {
    "profile_symbolic": "profiler_graphs",
    "profile_imperative": "profiler_operators",
    "profile_memory": "profiler_memory",
    "profile_api": "profiler_calls",
}
_DEFAULTS: dict[str, Any] = {
    "filename": "profile.json",
    "aggregate_stats": True,
    "continuous_dump": False,
    "dump_period": 1.0,
}


def _check_worker(profile_process: str) -> None:
    if profile_process == "server":
        raise UnsupportedError(
            "profile_process='server': there are no server processes, each process records its own work; "
            "use profile_process='worker'"
        )
    if profile_process != "worker":
        raise ValueError(f"`profile_process` must be 'worker', found {profile_process!r}")


def _as_switch(name: str, value: object) -> bool:
    if value in (True, False, 0, 1):
        return bool(value)
    raise ValueError(f"`{name}` must be True or False, found {value!r}")


def set_config(**kwargs: Any) -> None:
    """Say what the profiler records, and where it writes its file.

    Every call sets all options: those that are not given get their defaults. If no ``profile_...`` option is given,
    operators and graphs are recorded; otherwise what is given and true is.

    Parameters
    ----------
    **kwargs
        The options.

    Other Parameters
    ----------------
    filename : str or path
        File of `dump`. Default ``'profile.json'``.
    profile_all : bool
        All of the next four.
    profile_symbolic : bool
        Runs of compiled graphs (`mx.jit`, hybridized blocks), and each node in them.
    profile_imperative : bool
        Operators that are called one by one.
    profile_memory : bool
        Memory in use after each operator, and its peak.
    profile_api : bool
        Calls of operators and waits for arrays, as the calling thread sees them: with preparation, without what
        runs later on another thread.
    aggregate_stats : bool
        Whether `dumps` has statistics. Default True.
    continuous_dump : bool
        Whether the file is written every `dump_period` while the profiler runs. Default False.
    dump_period : float
        Seconds between two such writes. Default 1.
    profile_process : str
        ``'worker'``.

    Raises
    ------
    TypeError
        If there is no such option.
    ValueError
        If an option does not take the value; nothing has changed then.
    mxnet.error.UnsupportedError
        For ``profile_process='server'``, because there are no servers, and for
        ``gpu_memory_profile_filename_prefix``, because memory is part of the trace.

    Notes
    -----
    `mx.config` has the same settings (``profiler_filename`` and so on), and ``profiler_buffer_bytes``, the limit for
    the events that are kept.

    Differences: in MXNet `aggregate_stats` is off by default, and nothing is recorded if no ``profile_...`` option is
    given.

    Examples
    --------
    >>> mx.profiler.set_config(profile_imperative=True, profile_memory=True)
    >>> mx.config.profiler_memory, mx.config.profiler_graphs
    (True, False)
    >>> mx.profiler.set_config()
    >>> mx.config.profiler_memory, mx.config.profiler_graphs
    (False, True)
    """
    given = dict(kwargs)
    if "gpu_memory_profile_filename_prefix" in given:
        raise UnsupportedError(
            "gpu_memory_profile_filename_prefix: there is no file of its own for memory; use profile_memory=True, "
            "which writes the memory to the trace"
        )
    _check_worker(given.pop("profile_process", "worker"))
    known = ["profile_all", *_PROFILES, *_DEFAULTS]
    for name in given:
        if name not in known:
            raise TypeError(f"set_config: there is no option {name!r}; there are {', '.join(known)}")
    switches = {name: _as_switch(name, given[name]) for name in ["profile_all", *_PROFILES] if name in given}
    if not switches:
        switches = {"profile_symbolic": True, "profile_imperative": True}
    everything = switches.pop("profile_all", False)
    options = {**_DEFAULTS, **given}
    filename = os.fspath(options["filename"])
    if not isinstance(filename, str) or not filename.strip():
        raise ValueError(f"`filename` must be the path of a file, found {filename!r}")
    try:
        period_ms = round(float(options["dump_period"]) * 1000)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"`dump_period` must be a number of seconds, found {options['dump_period']!r}") from error
    if not 1 <= period_ms <= 1 << 40:
        raise ValueError(f"`dump_period` must be at least 0.001 seconds, found {options['dump_period']!r}")
    values: dict[str, bool | int | str] = {
        "profiler_filename": filename,
        "profiler_aggregate_stats": _as_switch("aggregate_stats", options["aggregate_stats"]),
        "profiler_continuous_dump": _as_switch("continuous_dump", options["continuous_dump"]),
        "profiler_dump_period_ms": period_ms,
    }
    for name, key in _PROFILES.items():
        values[key] = everything or switches.get(name, False)
    for key, value in values.items():
        _core.config_set(key, value, "program")


def set_state(state: str = "stop", profile_process: str = "worker") -> None:
    """Start or stop the profiler.

    Stopping waits for the operations that were called before. The recorded events are kept, and starting again adds to
    them, except after a finished `dump`.

    Parameters
    ----------
    state : {'run', 'stop'}
    profile_process : str
        ``'worker'``.

    Raises
    ------
    ValueError
        If there is no such state.
    mxnet.error.UnsupportedError
        For ``profile_process='server'``.

    Examples
    --------
    >>> mx.profiler.set_state('run')
    >>> mx.config.profiler
    True
    >>> mx.profiler.set_state('stop')
    """
    _check_worker(profile_process)
    if state not in ("run", "stop"):
        raise ValueError(f"`state` must be 'run' or 'stop', found {state!r}")
    _core.profiler_set_running(state == "run")


def pause(profile_process: str = "worker") -> None:
    """Record nothing until `resume`.

    Parameters
    ----------
    profile_process : str
        ``'worker'``.

    Raises
    ------
    mxnet.error.UnsupportedError
        For ``profile_process='server'``.

    Examples
    --------
    >>> mx.profiler.set_state('run')
    >>> mx.profiler.pause()
    >>> y = np.log(np.ones(3))
    >>> mx.profiler.resume()
    >>> mx.profiler.set_state('stop')
    >>> 'log' in mx.profiler.dumps(reset=True)
    False
    """
    _check_worker(profile_process)
    _core.profiler_set_paused(True)


def resume(profile_process: str = "worker") -> None:
    """Record again after `pause`.

    Parameters
    ----------
    profile_process : str
        ``'worker'``.

    Raises
    ------
    mxnet.error.UnsupportedError
        For ``profile_process='server'``.

    Examples
    --------
    >>> mx.profiler.pause()
    >>> mx.profiler.resume()
    """
    _check_worker(profile_process)
    _core.profiler_set_paused(False)


def dump(finished: bool = True, profile_process: str = "worker") -> None:
    """Write the trace to the file of `set_config`.

    The file is JSON in Chrome's format for trace events: https://ui.perfetto.dev and ``chrome://tracing`` open it. It
    has everything since the profiler was first started, or since the last finished dump, and replaces the previous
    file. Operations that were called before are waited for.

    Parameters
    ----------
    finished : bool
        Whether to stop the profiler; the next start then begins a new trace. The statistics of `dumps` stay.
    profile_process : str
        ``'worker'``.

    Raises
    ------
    OSError
        If the file cannot be written.
    mxnet.error.UnsupportedError
        For ``profile_process='server'``.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / 'profile.json'
    >>> mx.profiler.set_config(filename=path)
    >>> mx.profiler.set_state('run')
    >>> y = np.exp(np.ones(3))
    >>> mx.profiler.dump()
    >>> 'exp' in {event['name'] for event in json.loads(path.read_text())['traceEvents']}
    True
    >>> mx.profiler.set_config()
    """
    _check_worker(profile_process)
    _core.profiler_dump(bool(finished))


def dumps(reset: bool = False, format: str = "table", sort_by: str = "total", ascending: bool = False) -> str:
    """The statistics as text: for each operator the number of runs and their times.

    Operations that were called before are waited for.

    Parameters
    ----------
    reset : bool
        Whether to begin new statistics.
    format : {'table', 'json'}
    sort_by : {'total', 'avg', 'min', 'max', 'count'}
        Column by which the rows of each table are sorted.
    ascending : bool
        Whether the smallest comes first.

    Returns
    -------
    str
        Empty if ``aggregate_stats=False`` was set. Times are in milliseconds, memory in units of 1024 bytes.

    Raises
    ------
    ValueError
        If an argument has another value.

    Examples
    --------
    >>> import json
    >>> before = mx.profiler.dumps(reset=True)
    >>> mx.profiler.set_config()
    >>> mx.profiler.set_state('run')
    >>> y = np.exp(np.ones(3))
    >>> mx.profiler.set_state('stop')
    >>> json.loads(mx.profiler.dumps(reset=True, format='json'))['Time']['operator']['exp']['Count']
    1
    """
    reset, ascending = _as_switch("reset", reset), _as_switch("ascending", ascending)
    text: str = _core.profiler_dumps(reset, format, sort_by, ascending)
    return text


class Domain:
    """A group of tasks, frames, counters and markers: their category in the trace, and their table in `dumps`.

    Parameters
    ----------
    name : str

    Examples
    --------
    >>> domain = mx.profiler.Domain('training')
    >>> task = domain.new_task('epoch')
    >>> task.start()
    >>> task.stop()
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return self.name

    def new_task(self, name: str) -> Task:
        """A new `Task` of the domain.

        Parameters
        ----------
        name : str

        Returns
        -------
        Task
        """
        return Task(self, name)

    def new_frame(self, name: str) -> Frame:
        """A new `Frame` of the domain.

        Parameters
        ----------
        name : str

        Returns
        -------
        Frame
        """
        return Frame(self, name)

    def new_counter(self, name: str, value: int | None = None) -> Counter:
        """A new `Counter` of the domain.

        Parameters
        ----------
        name : str
        value : int or None
            Its first value.

        Returns
        -------
        Counter
        """
        return Counter(self, name, value)

    def new_marker(self, name: str) -> Marker:
        """A new `Marker` of the domain.

        Parameters
        ----------
        name : str

        Returns
        -------
        Marker
        """
        return Marker(self, name)


class _Span:
    def __init__(self, kind: str, domain: str, name: str) -> None:
        self.name = name
        self._span = _core.ProfilerSpan(kind, domain, name)

    def start(self) -> None:
        """Begin. What has begun already begins again."""
        self._span.start()

    def stop(self) -> None:
        """End, and record the time since `start`, if the profiler was recording then and is now.

        Raises
        ------
        ValueError
            If it has not begun.
        """
        self._span.stop()

    def __str__(self) -> str:
        return self.name


class Task(_Span):
    """A piece of work: records the time between `start` and `stop`.

    Parameters
    ----------
    domain : Domain
    name : str

    Examples
    --------
    >>> task = mx.profiler.Task(mx.profiler.Domain('training'), 'epoch')
    >>> task.start()
    >>> task.stop()
    """

    def __init__(self, domain: Domain, name: str) -> None:
        super().__init__("task", domain.name, name)


class Frame(_Span):
    """One of many passes, such as a step: records the time between `start` and `stop`.

    Parameters
    ----------
    domain : Domain
    name : str

    Examples
    --------
    >>> frame = mx.profiler.Frame(mx.profiler.Domain('training'), 'step')
    >>> frame.start()
    >>> frame.stop()
    """

    def __init__(self, domain: Domain, name: str) -> None:
        super().__init__("frame", domain.name, name)


class Event(_Span):
    """A section of the program: records the time between `start` and `stop`.

    Parameters
    ----------
    name : str

    Examples
    --------
    >>> event = mx.profiler.Event('load')
    >>> event.start()
    >>> event.stop()
    """

    def __init__(self, name: str) -> None:
        super().__init__("event", "", name)


class Counter:
    """A whole number whose changes are recorded.

    Parameters
    ----------
    domain : Domain
    name : str
    value : int or None
        Its first value. By default it begins at 0, which is not recorded.

    Raises
    ------
    OverflowError
        If the value has more than 64 bits.

    Examples
    --------
    >>> counter = mx.profiler.Domain('data').new_counter('batches', 0)
    >>> counter += 2
    >>> counter.decrement()
    """

    def __init__(self, domain: Domain, name: str, value: int | None = None) -> None:
        self.name = name
        self._counter = _core.ProfilerCounter(domain.name, name)
        if value is not None:
            self.set_value(value)

    def set_value(self, value: int) -> None:
        """Set the value.

        Parameters
        ----------
        value : int

        Raises
        ------
        OverflowError
            If it has more than 64 bits.
        """
        self._counter.set(int(value))

    def increment(self, delta: int = 1) -> None:
        """Add to the value.

        Parameters
        ----------
        delta : int

        Raises
        ------
        OverflowError
            If it has more than 64 bits.
        """
        self._counter.add(int(delta))

    def decrement(self, delta: int = 1) -> None:
        """Subtract from the value.

        Parameters
        ----------
        delta : int

        Raises
        ------
        OverflowError
            If it has more than 64 bits.
        """
        self._counter.add(-int(delta))

    def __iadd__(self, delta: int) -> Counter:
        self.increment(delta)
        return self

    def __isub__(self, delta: int) -> Counter:
        self.decrement(delta)
        return self

    def __str__(self) -> str:
        return self.name


class Marker:
    """An instant of the trace.

    Parameters
    ----------
    domain : Domain
    name : str

    Examples
    --------
    >>> mx.profiler.Marker(mx.profiler.Domain('training'), 'here').mark()
    """

    def __init__(self, domain: Domain, name: str) -> None:
        self.name = name
        self.domain = domain

    def mark(self, scope: str = "process") -> None:
        """Record this instant.

        Parameters
        ----------
        scope : {'global', 'process', 'thread', 'task', 'marker'}
            How far the line of the marker reaches. Traces have no smaller reach than a thread, which ``'task'`` and
            ``'marker'`` mean as well.

        Raises
        ------
        ValueError
            If there is no such reach.
        """
        _core.profiler_mark(self.domain.name, self.name, scope)

    def __str__(self) -> str:
        return self.name


@contextmanager
def scope(name: str = "<unk>:", append_mode: bool = True) -> Iterator[str]:
    """Name the operators of this thread inside a ``with`` block: their events carry it.

    Parameters
    ----------
    name : str
        A colon is appended if there is none at the end.
    append_mode : bool
        Whether the name of the block around is put in front.

    Yields
    ------
    str
        The whole name.

    Examples
    --------
    >>> with mx.profiler.scope('encoder'), mx.profiler.scope('attention') as name:
    ...     name
    'encoder:attention:'
    """
    name = name if name.endswith(":") else f"{name}:"
    outer = _core.profiler_scope()
    if append_mode and outer not in ("", "<unk>:"):
        name = outer + name
    _core.profiler_set_scope(name)
    try:
        yield name
    finally:
        _core.profiler_set_scope(outer)
