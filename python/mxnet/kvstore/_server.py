"""The asynchronous store: each value is on one rank, whose server updates it by the gradients of any rank as they come.

    rank 0                                   rank 1
    program ── push w, pull w ──────────────► server thread: update w, read w
       ▲                                          │
       └───────────── w ──────────────────────────┘

The server is a thread of each process. A request is one message, and so is its answer. A rank waits for the answer to a
request before it sends the next one to the same server.
"""

from __future__ import annotations

import builtins
import contextlib
import copy
import itertools
import json
import math
import struct
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as onp

from mxnet import autograd, error
from mxnet import numpy as np
from mxnet.base import PathLike, dtype_name
from mxnet.device import cpu
from mxnet.error import DistributedError, UnsupportedError
from mxnet.kvstore._allreduce import host_memory
from mxnet.kvstore._arguments import Groups, Key, Value
from mxnet.kvstore._communicators import AllProcesses
from mxnet.kvstore._processes import Processes
from mxnet.kvstore.kvstore import KVStore, UpdateFunction
from mxnet.numpy import ndarray
from mxnet.optimizer.optimizer import Optimizer
from mxnet.optimizer.updater import Updater, get_updater
from mxnet.sparse import row_sparse_array

__all__ = ["AsyncStore"]

_REQUEST, _ANSWER = 1, 2
# Rank and number of a request, and what MPI sends.
_Pending = tuple[int, int, Any]
# Description and arrays.
_Answer = tuple[Any, list[ndarray]]

# Length of the description at the beginning of a message.
_LENGTH = struct.Struct("=q")

Host = onp.ndarray[Any, Any]


def _message(description: Any, arrays: Sequence[ndarray]) -> Host:
    """A description and the bytes of arrays, in one piece of memory."""
    forms = [[dtype_name(array.dtype), list(array.shape)] for array in arrays]
    text = json.dumps([description, forms]).encode()
    start = _LENGTH.size + len(text)
    # Arrays begin at multiples of 16 bytes.
    ends = []
    end = -(-start // 16) * 16
    for array in arrays:
        ends.append((end, end + array.size * array.itemsize))
        end = -(-ends[-1][1] // 16) * 16
    memory, host = host_memory(end)
    host[:start] = onp.frombuffer(_LENGTH.pack(len(text)) + text, onp.uint8)
    for array, (first, last) in zip(arrays, ends, strict=True):
        if last > first:
            view = memory[first:last].view(dtype_name(array.dtype)).reshape(array.shape)
            view[...] = array.to_device(view.device)
    return host


def _read_message(host: Host) -> _Answer:
    """What `_message` was given. The arrays share the memory."""
    (length,) = _LENGTH.unpack(host[: _LENGTH.size].tobytes())
    start = _LENGTH.size + length
    description, forms = json.loads(host[_LENGTH.size : start].tobytes())
    memory = np.frombuffer(host, dtype="uint8")
    arrays = []
    end = -(-start // 16) * 16
    for name, shape in forms:
        itemsize = np.zeros(0, dtype=name).itemsize
        last = end + int(onp.prod(shape, dtype=onp.int64)) * itemsize
        if last > end:
            arrays.append(memory[end:last].view(name).reshape(shape))
        else:
            arrays.append(np.zeros(shape, dtype=name))
        end = -(-last // 16) * 16
    return description, arrays


def _error_of_server(name: str, text: str) -> Exception:
    """An exception of the class that a server names, if Python or the package has it."""
    found = getattr(error, name, None) or getattr(builtins, name, None)
    if isinstance(found, type) and issubclass(found, Exception):
        with contextlib.suppress(TypeError):  # some classes take other arguments than a text
            return found(text)
    return DistributedError(f"{name}: {text}")


def _parts(value: Value) -> list[ndarray]:
    return [value] if isinstance(value, ndarray) else [value.data, value.indices]


@dataclass
class _Form:
    """What each rank knows of a value that another one has."""

    shape: tuple[int, ...]
    dtype: Any
    num_bytes: int
    owner: int


class _Server:
    """The thread that answers requests of other ranks.

    Parameters
    ----------
    processes : Processes
    answer : callable
        From a description and arrays of a request to those of the answer.
    """

    def __init__(
        self, processes: Processes, answer: Callable[[Any, Sequence[ndarray]], tuple[Any, list[ndarray]]]
    ) -> None:
        self._processes = processes
        self._comm = processes.requests.Dup()
        self._answer = answer
        self._is_closing = False
        self._numbers = itertools.count()
        self._thread = threading.Thread(target=self._run, name="kvstore server", daemon=True)
        self._thread.start()
        processes.at_close(self._announce, self._stop)

    def _run(self) -> None:
        mpi = self._processes.mpi
        status = mpi.Status()

        def is_needed() -> bool:
            return self._is_closing or bool(self._comm.Iprobe(mpi.ANY_SOURCE, _REQUEST, status))

        while True:
            try:
                # The program's thread needs the interpreter meanwhile.
                self._processes.wait_until(is_needed, testing_s=0)
                if self._is_closing:
                    return
                source = status.Get_source()
                host = onp.empty(status.Get_count(mpi.BYTE), onp.uint8)
                self._processes.wait(self._comm.Irecv(host, source, _REQUEST))
                self._serve(source, *_read_message(host))
            except Exception as problem:  # noqa: BLE001  # the program's thread raises it
                text = (
                    f"kvstore: the server of rank {self._processes.rank} failed\n  {type(problem).__name__}: {problem}"
                )
                traceback.print_exc()
                self._processes.fail(text)
                self._fail_others(text)
                return

    def _serve(self, source: int, description: Any, arrays: list[ndarray]) -> None:
        if "failed" in description:
            self._processes.fail(description["failed"])
            return
        number = {"number": description["number"]}
        try:
            found, parts = self._answer(description, arrays)
            answer = _message({**found, **number}, parts)
        except Exception as problem:  # noqa: BLE001  # the rank that asked raises it
            text = problem.args[0] if len(problem.args) == 1 and isinstance(problem, KeyError) else str(problem)
            answer = _message({"error": [type(problem).__name__, str(text)], **number}, [])
        self._processes.wait(self._comm.Isend(answer, source, _ANSWER))

    def ask(self, owner: int, description: Mapping[str, Any], arrays: Sequence[ndarray]) -> _Pending:
        """Send a request.

        Parameters
        ----------
        owner : int
            Rank of the server.
        description : mapping of str to what JSON can express
        arrays : sequence of ndarray

        Returns
        -------
        tuple of int, int and MPI.Request
            For `take_answer`.
        """
        self._processes.check()
        number = next(self._numbers)
        return owner, number, self._comm.Isend(_message({**description, "number": number}, arrays), owner, _REQUEST)

    def take_answer(self, pending: _Pending) -> _Answer:
        """Wait for the answer to a request.

        Parameters
        ----------
        pending : tuple
            Made by `ask`.

        Returns
        -------
        tuple of dict and list of ndarray
            The description and the arrays of the answer; ``error`` in the description is the class and the text of an
            error.

        Raises
        ------
        DistributedError
            If a rank has ended by an error.
        """
        owner, number, sent = pending
        mpi = self._processes.mpi
        status = mpi.Status()

        def is_sent() -> bool:
            self._processes.check()
            return bool(sent.Test())

        def has_arrived() -> bool:
            self._processes.check()
            return bool(self._comm.Iprobe(owner, _ANSWER, status))

        self._processes.wait_until(is_sent, testing_s=0)
        while True:
            self._processes.wait_until(has_arrived, testing_s=0)
            answer = onp.empty(status.Get_count(mpi.BYTE), onp.uint8)
            self._processes.wait(self._comm.Irecv(answer, owner, _ANSWER))
            description, arrays = _read_message(answer)
            # The answer to an earlier request may have arrived after its wait was interrupted.
            if description["number"] == number:
                return description, arrays

    def _announce(self, cause: str) -> None:
        """Tell the other ranks that this one ends by an error."""
        if cause:
            self._fail_others(f"kvstore: rank {self._processes.rank} has ended\n  {cause}")

    def _fail_others(self, text: str) -> None:
        """Have waits of the other ranks raise a DistributedError."""
        host = _message({"failed": text}, [])
        for rank in range(self._processes.size):
            if rank != self._processes.rank:
                self._processes.wait(self._comm.Isend(host, rank, _REQUEST))

    def _stop(self) -> None:
        self._is_closing = True
        self._thread.join()


class AsyncStore(KVStore):
    """A store whose values each lie on one rank; see the module."""

    def __init__(self, handle: AllProcesses, processes: Processes) -> None:
        super().__init__(handle)
        self._forms: dict[Key, _Form] = {}
        self._processes = processes
        # The optimizer of this rank's program.
        self._optimizer: Optimizer | None = None
        # Held while values are updated or read: by the server and by the program's own thread.
        self._lock = threading.Lock()
        self._server = _Server(processes, self._answer)

    def _keep(self, key: Key, value: Value) -> None:
        """Give a value to the rank that holds the fewest bytes."""
        held = [0] * self.num_workers
        for form in self._forms.values():
            held[form.owner] += form.num_bytes
        num_bytes = int(onp.prod(value.shape, dtype=onp.int64)) * np.zeros(0, dtype=value.dtype).itemsize
        owner = held.index(min(held))
        with self._lock:
            self._forms[key] = _Form(tuple(value.shape), value.dtype, num_bytes, owner)
            if owner == self.rank:
                self._values[key] = self._at(value, cpu())

    def _init(self, what: str, groups: Groups) -> None:
        super()._init(what, groups)
        # A rank may ask for a value as soon as its own call returns.
        self._barrier()

    def _forget(self, keys: Sequence[Key]) -> None:
        # No rank may still push to a value that goes away.
        self._barrier()
        with self._lock:
            super()._forget(keys)
            for key in keys:
                self._forms.pop(key, None)

    def _form(self, what: str, key: Key) -> Any:
        if key not in self._forms:
            raise KeyError(f"{what}: key {key!r} has no value; `init` or `broadcast` gives it the first one")
        return self._forms[key]

    # ---- requests of this rank ----

    def _request(self, request: Mapping[str, Any], values: Mapping[Key, list[ndarray]]) -> dict[Key, list[ndarray]]:
        """Ask the owners of keys to do something with arrays, and return the arrays that they send for each key."""
        self._processes.check()
        by_owner: dict[int, list[Key]] = {}
        for key in values:
            by_owner.setdefault(self._forms[key].owner, []).append(key)
        waiting: dict[int, _Pending] = {}
        answers: dict[int, _Answer] = {}
        for owner in sorted(by_owner, key=self.rank.__eq__):
            keys = by_owner[owner]
            arrays = [array for key in keys for array in values[key]]
            whole = {**request, "keys": keys, "counts": [len(values[key]) for key in keys]}
            if owner == self.rank:
                # Done while the others do their part.
                answers[owner] = self._answer(whole, arrays)
            else:
                waiting[owner] = self._server.ask(owner, whole, arrays)
        answers.update({owner: self._server.take_answer(pending) for owner, pending in waiting.items()})
        found: dict[Key, list[ndarray]] = {}
        for owner, keys in by_owner.items():
            description, arrays = answers[owner]
            if "error" in description:
                name, text = description["error"]
                raise _error_of_server(name, text)
            rest = iter(arrays)
            for key, n in zip(keys, description["counts"], strict=True):
                found[key] = [next(rest) for _ in range(n)]
        return found

    def _push(self, what: str, groups: Groups, reads: bool = False) -> dict[Key, Value]:
        self._check_groups(what, groups)
        self._check_updater(what)
        sent: dict[Key, list[ndarray]] = {}
        for key, values in groups.items():
            merged = self._merged(key, values)
            if self._compression is not None and isinstance(merged, ndarray):
                codes = self._compression.pack(self._compression.quantize(key, merged))
                sent[key] = [np.array(codes, dtype="uint8")]
            else:
                sent[key] = _parts(merged)
        sender = self._optimizer
        numbers = {} if sender is None else {"lr": sender.lr, "wd": sender.wd, "rescale_grad": sender.rescale_grad}
        found = self._request({"do": "push", "numbers": numbers, "reads": reads}, sent)
        return {key: self._value(key, arrays) for key, arrays in found.items()} if reads else {}

    def _current(self, keys: Sequence[Key]) -> dict[Key, Value]:
        found = self._request({"do": "pull"}, {key: [] for key in keys})
        return {key: self._value(key, arrays) for key, arrays in found.items()}

    def _current_rows(self, wanted: Sequence[tuple[Key, ndarray]]) -> list[row_sparse_array]:
        found = [self._request({"do": "pull rows"}, {key: [rows]}) for key, rows in wanted]
        return [self._value(key, part[key]) for (key, _), part in zip(wanted, found, strict=True)]

    def _value(self, key: Key, arrays: Sequence[ndarray]) -> Value:
        """The value that `_parts` has taken apart."""
        return arrays[0] if len(arrays) == 1 else row_sparse_array._of(arrays[0], arrays[1], self._forms[key].shape)

    # ---- answers to any rank ----

    def _answer(self, request: Mapping[str, Any], arrays: Sequence[ndarray]) -> _Answer:
        """Do what a rank asks for."""
        rest = iter(arrays)
        given = {key: [next(rest) for _ in range(n)] for key, n in zip(request["keys"], request["counts"], strict=True)}
        with self._lock, autograd.pause():
            for key in given:
                if key not in self._values:
                    raise KeyError(f"kvstore: rank {self.rank} has no value of key {key!r}")
            if request["do"] == "push":
                self._apply(request["numbers"], given)
            if request["do"] == "pull rows":
                found = [_parts(self._rows_of(self._values[key], rows)) for key, (rows,) in given.items()]
            elif request["do"] == "pull" or request["reads"]:
                found = [_parts(self._values[key]) for key in given]
            else:
                found = [[] for _ in given]
        return {"counts": list(map(len, found))}, [array for parts in found for array in parts]

    def _apply(self, numbers: Mapping[str, float], given: Mapping[Key, list[ndarray]]) -> None:
        """Update values by the gradients of one rank, with its learning rate."""
        self._check_updater(f"push to rank {self.rank}")
        if isinstance(self._updater, Updater):
            for name, number in numbers.items():
                setattr(self._updater.optimizer, name, number)
        grads: list[Value] = []
        for key, arrays in given.items():
            if self._compression is not None and len(arrays) == 1:
                shape = self._forms[key].shape
                values = self._compression.unpack(arrays[0].asnumpy(), math.prod(shape))
                grads.append(np.array(values.reshape(shape), dtype="float32"))
            else:
                grads.append(self._value(key, arrays))
        self._update(list(given), grads)

    # ---- the optimizer ----

    def set_optimizer(self, optimizer: Optimizer) -> None:
        super().set_optimizer(optimizer)
        # The server has an optimizer of its own, which only changes while the values are locked. Each request brings
        # the rates of the rank that pushes.
        parameters = optimizer.param_dict
        with self._lock:
            self._updater = get_updater(copy.deepcopy(optimizer, {id(parameters): parameters}))
            self._optimizer = optimizer
        # A rank may push as soon as its own call returns.
        self._barrier()

    def set_gradient_compression(self, compression_params: Mapping[str, Any]) -> None:
        super().set_gradient_compression(compression_params)
        self._barrier()

    def _set_updater(self, updater: UpdateFunction) -> None:
        with self._lock:
            self._updater, self._optimizer = updater, None

    def _no_states(self, method: str) -> NoReturn:
        raise UnsupportedError(
            f"{method}: the states of an asynchronous store lie on all ranks\n"
            "  hint: save the parameters, and begin with new states"
        )

    def save_optimizer_states(self, fname: PathLike, dump_optimizer: bool = False) -> None:
        """Not possible: raises UnsupportedError, because the states lie on all ranks.

        Parameters
        ----------
        fname : path
        dump_optimizer : bool

        Raises
        ------
        mxnet.error.UnsupportedError
            Always.
        """
        self._no_states("save_optimizer_states")

    def load_optimizer_states(self, fname: PathLike) -> None:
        """Not possible: raises UnsupportedError, because the states lie on all ranks.

        Parameters
        ----------
        fname : path

        Raises
        ------
        mxnet.error.UnsupportedError
            Always.
        """
        self._no_states("load_optimizer_states")
