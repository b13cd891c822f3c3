"""Wrong calls of every function of `mxnet.h`.

`python c_misuse.py LIBRARY HEADER FOLDER [COUNT [SEED]]` makes them, and prints what came of them. The calls are
derived from the declarations: for each parameter, values that are wrong for its type, all others being right; then
COUNT calls of each function in which any number of parameters is wrong. The program runs in a process of its own, which
a crash ends; the last line of its standard error says which call it was.
"""

from __future__ import annotations

import ctypes
import json
import random
import re
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from c_library import Arg, Fault, Outputs

FLOAT32 = 11
INVENTED = (0, 1, 2**63, 2**64 - 1)
HUGE = (2**63, 2**64 - 1)

# Pointers that may be null, as the header says.
NULLABLE = {
    ("mx_array_create", "data"),
    ("mx_array_create", "device"),
    ("mx_array_from_memory", "deleter"),
    ("mx_array_from_memory", "context"),
    ("mx_mark", "grad_req"),
    ("mx_backward", "head_grads"),
    ("mx_grad", "head_grads"),
    ("mx_profiler_summary", "format"),
    ("mx_profiler_summary", "sort_by"),
}

# Pairs of a list and its length; the lengths of texts and of lists for results are the caller's word.
LENGTHS = {
    ("mx_array_create", "ndim"),
    ("mx_array_from_memory", "ndim"),
    ("mx_invoke", "nargs"),
    ("mx_backward", "len"),
    ("mx_grad", "num_heads"),
    ("mx_grad", "num_variables"),
    ("mx_graph_run", "len"),
    ("mx_save", "len"),
}


@dataclass(frozen=True)
class Param:
    """A parameter: its type without spaces around stars, and its name."""

    type: str
    name: str


def functions(header: Path) -> dict[str, list[Param]]:
    """The functions that the header declares."""
    text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.DOTALL)
    found = {}
    for name, params in re.findall(r"^(?:\w+ )+\*?(mx_\w+)\(([^;{]*)\);", text, flags=re.MULTILINE):
        split = [re.fullmatch(r"(.*?)(\w+)", " ".join(param.split())) for param in params.split(",")]
        parsed = [Param(match[1].strip(), match[2]) for match in split if match]
        found[name] = [] if [param.name for param in parsed] == ["void"] else parsed
    return found


class ManagedTensor(ctypes.Structure):
    """`DLManagedTensorVersioned` of DLPack 1, its structures inside written out."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class Caller:
    """Makes calls, and checks what they return."""

    def __init__(self, library: str, folder: Path) -> None:
        self.c, self.folder = ctypes.CDLL(library), folder
        self.keep: list[Any] = []
        self.num_calls, self.wrong = 0, list[str]()

    def call(self, name: str, *arguments: Any) -> int:
        return int(getattr(self.c, name)(*arguments))

    def right(self, name: str, *arguments: Any) -> None:
        """A call that succeeds."""
        status = self.call(name, *arguments)
        assert status == 0, f"{name}: {self.message()}"

    def message(self) -> str:
        fault = Fault(size=ctypes.sizeof(Fault))
        self.c.mx_last_error(ctypes.byref(fault))
        return bytes(fault.message or b"").decode()

    def attempt(self, what: str, must_fail: bool, name: str, *arguments: Any) -> int:
        """A call that may be wrong: it must end, with a status and, after an error, a message."""
        print(f"{name}: {what}", file=sys.stderr, flush=True)
        self.num_calls += 1
        status = self.call(name, *arguments)
        if not 0 <= status <= 17:
            self.wrong.append(f"{name}: {what}: status {status}")
        elif status == 17:
            self.wrong.append(f"{name}: {what}: internal error: {self.message()}")
        elif must_fail and status == 0:
            self.wrong.append(f"{name}: {what}: no error")
        elif status and name != "mx_last_error" and not self.message():
            self.wrong.append(f"{name}: {what}: no message")
        return status

    # Values that are right.

    def array(self, sizes: tuple[int, ...] = (2, 3)) -> int:
        shape, handle = (ctypes.c_int64 * max(len(sizes), 1))(*sizes), ctypes.c_uint64()
        self.right("mx_array_create", None, shape, ctypes.c_size_t(len(sizes)), FLOAT32, None, ctypes.byref(handle))
        return handle.value

    def graph(self) -> int:
        handle = ctypes.c_uint64()
        files = [str(self.folder / f"net-{end}").encode() for end in ("symbol.json", "0000.params")]
        self.right("mx_graph_load", *files, ctypes.byref(handle))
        return handle.value

    def scope(self) -> int:
        handle = ctypes.c_uint64()
        self.right("mx_record_begin", 0, 0, ctypes.byref(handle))
        return handle.value

    def recorded(self) -> tuple[int, int]:
        """The exponential of a variable, and the variable."""
        variable, scope, out = self.array(), ctypes.c_uint64(), self.outputs()
        self.right("mx_mark", ctypes.c_uint64(variable), None)
        self.right("mx_record_begin", 1, 1, ctypes.byref(scope))
        argument = Arg(kind=9)
        argument.value.array = variable
        self.right("mx_invoke", b"exp", ctypes.byref(argument), ctypes.c_size_t(1), ctypes.byref(out))
        self.right("mx_record_end", scope)
        return out.arrays[0], variable

    def hold(self, value: Any) -> Any:
        self.keep.append(value)
        return value

    def handles(self, *values: int) -> Any:
        return self.hold((ctypes.c_uint64 * max(len(values), 1))(*values))

    def buffer(self) -> Any:
        return self.hold((ctypes.c_uint64 * 64)())

    def outputs(self) -> Outputs:
        return self.hold(Outputs(size=ctypes.sizeof(Outputs), arrays=self.buffer(), capacity=64))

    def managed(self) -> Any:
        pointer = ctypes.c_void_p()
        handle = self.array()
        self.right("mx_array_to_dlpack", ctypes.c_uint64(handle), ctypes.byref(pointer))
        self.right("mx_free", ctypes.c_uint64(handle))
        return pointer

    def text_of(self, function: str, name: str) -> bytes:
        chosen = {
            "op": b"exp",
            "key": b"engine_mode",
            "value": b"adaptive",
            "device": b"cpu",
            "kind": b"cpu",
            "grad_req": b"write",
            "what": b"operators",
            "filename": str(self.folder / "trace.json").encode(),
            "reach": b"thread",
            "format": b"json",
            "sort_by": b"total",
            "symbol_file": str(self.folder / "net-symbol.json").encode(),
            "param_file": str(self.folder / "net-0000.params").encode(),
            "path": str(self.folder / ("saved" if function == "mx_save" else "net-0000.params")).encode(),
        }
        return chosen.get(name, b"name")

    def good(self, function: str, param: Param) -> Any:
        """A right value of a parameter."""
        kind, name = param.type, param.name
        if kind == "mx_handle":
            make = {"scope": self.scope, "graph": self.graph}.get(name, self.array)
            return ctypes.c_uint64(self.recorded()[1] if function == "mx_gradient" else make())
        if kind == "const char *":
            return self.text_of(function, name)
        if kind == "char *":
            return self.hold(ctypes.create_string_buffer(1 << 16))
        if kind == "size_t":
            sizes = {"ndim": 2, "len_bytes": 24, "names_capacity": 1 << 16}
            if name == "capacity":
                return ctypes.c_size_t(64 if function in ("mx_array_shape", "mx_load") else 1 << 16)
            return ctypes.c_size_t(sizes.get(name, 1))
        if kind == "int32_t":
            return ctypes.c_int32(FLOAT32 if name == "dtype" else 0)
        if kind == "int64_t *" or (kind, name) == ("const int64_t *", "shape"):
            return self.hold((ctypes.c_int64 * 64)(2, 3))
        if kind == "const mx_handle *" and name in ("heads", "variables"):
            if name == "heads":
                self.pair = self.recorded()
            return self.handles(self.pair[name == "variables"])
        if kind == "const mx_handle *":
            return self.handles(0 if name == "head_grads" else self.array())
        if kind == "const char *const *":
            return self.hold((ctypes.c_char_p * 1)(b"name"))
        if kind == "const mx_arg *":
            arguments = (Arg * 1)()
            arguments[0].kind, arguments[0].value.array = 9, self.array()
            return self.hold(arguments)
        if kind == "mx_outputs *":
            return ctypes.byref(self.outputs())
        if kind == "mx_error *":
            return ctypes.byref(self.hold(Fault(size=ctypes.sizeof(Fault))))
        if kind == "void *" and name == "managed":
            return self.managed()
        if kind in ("void *", "const void *"):
            return self.buffer() if name == "data" else None
        if kind == "mx_deleter":
            return None
        return {"int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64}[kind](1) if "*" not in kind else self.buffer()

    # Values that are wrong: what they are, whether the call must fail, and the value.

    def bad(self, function: str, param: Param) -> Iterator[tuple[str, bool, Any]]:
        kind, name = param.type, param.name
        here = (function, name)
        if kind == "mx_handle":
            yield from ((f"handle {x:#x}", True, ctypes.c_uint64(x)) for x in (*INVENTED, *self.gone))
            if function != "mx_free":
                yield from (("other kind", True, ctypes.c_uint64(x)) for x in self.others(name))
            yield "foreign scope", True, ctypes.c_uint64(self.foreign_scope)
        elif kind == "size_t":
            yield from (
                (f"{name} {x}", here in LENGTHS or name == "len_bytes", ctypes.c_size_t(x))
                for x in wrong_lengths(here, name)
            )
            yield f"{name} 0", False, ctypes.c_size_t(0)
        elif kind == "int32_t":
            yield from ((f"{name} {x}", name == "dtype", ctypes.c_int32(x)) for x in (-(2**31), -1, 99, 2**31 - 1))
        elif kind in ("int64_t", "uint64_t"):
            make = ctypes.c_int64 if kind == "int64_t" else ctypes.c_uint64
            yield from ((f"{name} {x}", False, make(x)) for x in (-(2**63), -1, 0, 2**63 - 1))
        elif kind == "mx_deleter":
            return
        else:
            yield f"{name} null", here not in NULLABLE, None
            if kind not in ("const char *", "char *", "void *", "const void *") or name == "managed":
                yield f"{name} misaligned", True, ctypes.c_void_p(ctypes.addressof(self.buffer()) + 1)
            yield from self.bad_contents(kind, name)
            if name == "managed" and kind == "void *":
                yield from self.bad_managed()

    def bad_contents(self, kind: str, name: str) -> Iterator[tuple[str, bool, Any]]:
        if kind == "const char *":
            yield f"{name} not UTF-8", True, b"caf\xe9 \xff"
            yield f"{name} empty", False, b""
            yield f"{name} unknown", False, b"no such"
            yield f"{name} of a megabyte", False, b"x" * (1 << 20)
        elif (kind, name) == ("const int64_t *", "shape"):
            for sizes in ((-1, 3), (2**62, 2**62), (2**63 - 1, 1), (-(2**63), 1), (2**60, 8)):
                yield f"shape {sizes}", True, self.hold((ctypes.c_int64 * 64)(*sizes))
        elif kind == "const mx_handle *":
            for handle in (*INVENTED[0 if name != "head_grads" else 1 :], *self.gone, self.foreign_scope):
                yield f"{name} {handle:#x}", True, self.handles(handle)
        elif kind == "const char *const *":
            for text in (None, b"caf\xe9"):
                yield f"{name} {text!r}", True, self.hold((ctypes.c_char_p * 1)(text))
        elif kind in ("mx_outputs *", "mx_error *"):
            make = Outputs if kind == "mx_outputs *" else Fault
            for size in (0, 1, 7, 8, 15, 4097, 2**63, 2**64 - 1):
                yield f"size {size}", True, ctypes.byref(self.hold(make(size=size)))
            if kind == "mx_outputs *":
                whole = ctypes.sizeof(Outputs)
                yield "no list", True, ctypes.byref(self.hold(Outputs(size=whole, capacity=4)))
                yield "no buffer", True, ctypes.byref(self.hold(Outputs(size=whole)))
        elif kind == "const mx_arg *":
            yield from self.bad_arguments()

    def bad_arguments(self) -> Iterator[tuple[str, bool, Any]]:
        """Single arguments of `exp`, which takes an array."""

        def argument(kind: int, name: bytes | None = None, length: int = 0, **value: Any) -> Any:
            made = Arg(name=name, kind=kind, len=length)
            for field, x in value.items():
                setattr(made.value, field, x)
            return ctypes.byref(self.hold(made))

        # Kinds 1 to 3 are numbers, of which there is an exponential.
        yield from ((f"kind {kind}", True, argument(kind)) for kind in (0, *range(4, 13), -1, 99, 2**31 - 1, -(2**31)))
        for kind in (4, 6, 7, 8, 10):
            for length in (1, *HUGE):
                yield f"kind {kind}, null, len {length}", True, argument(kind, length=length)
            bad = ctypes.addressof(self.buffer()) + 1
            yield f"kind {kind}, misaligned", True, argument(kind, length=2, pointer=bad)
            yield f"kind {kind}, len {HUGE[1]}", kind != 4, argument(kind, length=HUGE[1], pointer=bad - 1)
        yield from ((f"dtype {x}", True, argument(11, integer=x)) for x in (-1, 15, 2**32, -(2**63)))
        yield from ((f"array {x:#x}", True, argument(9, array=x)) for x in (*INVENTED, *self.gone, self.foreign_scope))
        yield "name not UTF-8", True, argument(9, name=b"\xff", array=self.array())
        yield "name unknown", True, argument(9, name=b"no_such", array=self.array())
        yield "text not UTF-8", True, argument(5, text=b"\xff")

    def bad_managed(self) -> Iterator[tuple[str, bool, Any]]:
        """DLPack structures that state what cannot be. The right one is an array (2, 3) of float32."""
        sizes = {"a size of -1": (-1, 3), "too many elements": (2**40, 2**40), "too many bytes": (2**62, 1)}
        lists = {what: self.hold((ctypes.c_int64 * 2)(*values)) for what, values in sizes.items()}
        changes: dict[str, dict[str, Any]] = {
            "version 0": {"major": 0},
            "version 9": {"major": 9},
            "-1 axes": {"ndim": -1},
            "a billion axes": {"ndim": 10**9},
            "no sizes": {"shape": None},
            "an unknown type": {"code": 200},
            "3 bits": {"bits": 3},
            "4 lanes": {"lanes": 4},
            "0 lanes": {"lanes": 0},
            "an unknown device": {"device_type": 99},
            "device -5": {"device_type": -5},
            "a GPU": {"device_type": 2},
            "no data": {"data": None},
            "misaligned data": {"byte_offset": 1},
            **{what: {"shape": ctypes.cast(values, ctypes.POINTER(ctypes.c_int64))} for what, values in lists.items()},
        }
        for what, fields in changes.items():
            shape = self.hold((ctypes.c_int64 * 2)(2, 3))
            right = {
                "major": 1,
                "data": ctypes.addressof(self.buffer()),
                "device_type": 1,
                "ndim": 2,
                "code": 2,
                "bits": 32,
            }
            made = ManagedTensor(lanes=1, shape=ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64)), **right)
            for field, value in fields.items():
                setattr(made, field, value)
            yield f"managed with {what}", what != "misaligned data", ctypes.byref(self.hold(made))

    def others(self, name: str) -> list[int]:
        """Objects that are not of the kind that the parameter `name` takes."""
        kinds = {"scope": [self.array(), self.graph()], "graph": [self.array(), self.open_scope]}
        return kinds.get(name, [self.graph(), self.open_scope])

    def prepare(self) -> None:
        """Objects that wrong calls use: freed ones, and scopes of this thread and of another."""
        self.gone = [self.array(), self.graph()]
        for handle in self.gone:
            self.right("mx_free", ctypes.c_uint64(handle))
        found: list[int] = []
        thread = threading.Thread(target=lambda: found.append(self.scope()))
        thread.start()
        thread.join()
        (self.foreign_scope,) = found
        self.open_scope = self.scope()


def wrong_lengths(here: tuple[str, str], name: str) -> tuple[int, ...]:
    """Wrong lengths: a list of that many entries cannot exist. A capacity is the caller's word: smaller ones only."""
    return HUGE if here in LENGTHS or name == "len_bytes" else (1,)


def wrong_calls(caller: Caller, declared: dict[str, list[Param]]) -> None:
    """Each parameter of each function with each wrong value."""
    for function, params in declared.items():
        if function in ("mx_version", "mx_abi_version"):
            continue
        if not params:
            caller.attempt("as it is", False, function)
        for at, param in enumerate(params):
            for what, must_fail, value in caller.bad(function, param):
                given = [value if i == at else caller.good(function, other) for i, other in enumerate(params)]
                caller.attempt(what, must_fail, function, *given)
                caller.keep.clear()
        # Some of them set a file name that is a megabyte long.
        trace = str(caller.folder / "trace.json").encode()
        caller.right("mx_profiler_configure", trace, b"operators")


def random_calls(caller: Caller, declared: dict[str, list[Param]], count: int, seed: int) -> None:
    """Calls of functions in any order, each parameter right or wrong."""
    chance = random.Random(seed)
    names = [name for name, params in declared.items() if params] * count
    chance.shuffle(names)
    trace = str(caller.folder / "trace.json").encode()
    for function in names:
        said, given = [], []
        for param in declared[function]:
            wrong = list(caller.bad(function, param)) if chance.random() < 0.4 else []
            what, _, value = chance.choice(wrong or [("", False, caller.good(function, param))])
            said += [what] * bool(what)
            given.append(value)
        caller.attempt(", ".join(said) or "right values", False, function, *given)
        caller.keep.clear()
        if function == "mx_profiler_configure":
            caller.right(function, trace, b"operators")


def on_another_thread(body: Callable[[], None]) -> None:
    failed: list[AssertionError] = []

    def run() -> None:
        try:
            body()
        except AssertionError as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]


def right_calls(caller: Caller, declared: dict[str, list[Param]]) -> dict[str, int]:
    """Each function once, with right values."""
    statuses = {}
    for function, params in declared.items():
        if function not in ("mx_version", "mx_abi_version"):
            given = [caller.good(function, param) for param in params]
            statuses[function] = caller.attempt("right values", False, function, *given)
    return statuses


def main(library: str, header: str, folder: str, count: str = "20", seed: str = "0") -> None:
    declared = functions(Path(header))
    caller = Caller(library, Path(folder))
    caller.prepare()
    statuses = right_calls(caller, declared)
    wrong_calls(caller, declared)
    on_another_thread(lambda: wrong_calls(caller, declared))
    random_calls(caller, declared, int(count), int(seed))
    on_another_thread(lambda: random_calls(caller, declared, int(count), int(seed) + 1))
    print(
        json.dumps(
            {
                "functions": list(declared),
                "params": sum(map(len, declared.values())),
                "calls": caller.num_calls,
                "right": statuses,
                "wrong": caller.wrong,
            }
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
