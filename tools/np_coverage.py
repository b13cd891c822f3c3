"""What of NumPy's interface `mx.np` has, found by looking and by calling: the text of docs/api/coverage.md.

The names are those of the contract (`tests/api/np.tsv`). A function is called on small operands: as
`np_coverage_calls.txt` says, else with the first of `ATTEMPTS` that NumPy accepts too. The call is recorded to see
whether a gradient arrives at an operand, repeated with every dtype to see which it takes, and its waits for values are
counted to see whether a compiler could trace it. Nothing depends on the machine or on chance, so that the table changes
with the package only.
"""

import faulthandler
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CALLS = Path(__file__).with_name("np_coverage_calls.txt")
LIMIT_S = 120  # a call that hangs ends the probe, and the traceback says which

# Namespaces of the contract that are shown, in this order. Of dtypes and the like only the presence would be shown.
SPACES = (
    "numpy",
    "numpy.linalg",
    "numpy.fft",
    "numpy.random",
    "numpy.ndarray",
    "numpy.ufunc",
    "numpy.random.Generator",
)
# What a function that no line of `np_coverage_calls.txt` names is called with, and a method of an array.
ATTEMPTS = ("x", "x, y", "i", "i, j", "b", "c", "v", "v, w", "m", "n", "x, 1", "x, 0, 1", "(x, y)", "b, x, y")
METHOD_ATTEMPTS = ("", "1", "0, 1", "y")
DTYPES = "bool int8 int64 uint8 float16 bfloat16 float32 float64 complex64 complex128".split()  # noqa: SIM905


@dataclass
class Row:
    """One name of NumPy's."""

    name: str  # below `np`
    there: bool
    called: str = ""  # the call that the columns below are about
    gradient: str = ""  # yes, zero (everywhere, as of a step), no
    traceable: bool = False
    dtypes: tuple[str, ...] = ()


def lookup(root: Any, dotted: str) -> Any:
    for part in filter(None, dotted.split(".")):
        root = getattr(root, part, None)
    return root


def is_there(root: Any, dotted: str) -> bool:
    """Whether there is such a name: that of `newaxis` is, though its value is None."""
    outer, _, name = dotted.rpartition(".")
    return hasattr(lookup(root, outer), name)


def listed_calls() -> dict[str, str]:
    """Name -> call, from the file beside this one."""
    lines = [line for line in CALLS.read_text().splitlines() if line and not line.startswith("#")]
    return dict(line.split(": ", 1) for line in lines)


def operands() -> dict[str, Any]:
    """What calls may name: small, and far from where functions have no derivative."""
    import numpy

    def wave(n: int, low: float, high: float, phase: float) -> Any:
        return low + (high - low) * (0.5 + 0.5 * numpy.sin(1.7 * numpy.arange(1, n + 1) + phase))

    def square(low: float, high: float, phase: float) -> Any:
        return wave(16, low, high, phase).reshape(4, 4)

    m = square(-1, 1, 2.5) + 4 * numpy.eye(4)
    found = {
        "x": square(0.5, 1.5, 0.0),
        "y": square(0.5, 1.5, 1.0),
        "v": wave(16, 0.5, 1.5, 0.3),
        "w": wave(16, 0.5, 1.5, 1.3),
        "u": wave(3, 0.5, 1.5, 0.7),  # a vector in space
        "p": square(0.1, 0.9, 0.6),  # probabilities
        "t": numpy.linspace(0.5, 1.5, 5),
        "m": m,
        "spd": m @ m.T,
    }
    found = {name: value.astype("float32") for name, value in found.items()}
    found["c"] = (square(-1, 1, 0.2) + 1j * square(-1, 1, 1.2)).astype("complex64")
    found["i"] = (numpy.arange(16).reshape(4, 4) % 7) + 1
    found["j"] = (numpy.arange(16).reshape(4, 4) % 3) + 1
    found["k"] = numpy.array([2, 0, 3, 1])  # positions
    found["b"] = (numpy.arange(16).reshape(4, 4) % 3) > 0
    found["n"] = 4
    return found


class Probe:
    """Calls functions on small arrays."""

    def __init__(self) -> None:
        import numpy

        import mxnet as mx

        self.mx, self.numpy = mx, numpy
        self.operands = operands()
        self.listed = listed_calls()

    def texts(self, space: str, name: str) -> list[str]:
        """Calls to try."""
        if name in self.listed:
            return [self.listed[name]] if self.listed[name] != "-" else []
        last_name = name.rpartition(".")[2]
        if space == "numpy.ndarray":
            return [f"x.{last_name}({attempt})" for attempt in METHOD_ATTEMPTS]
        if space == "numpy.random.Generator":
            # NumPy crashes if its methods get anything else as `self`.
            function = self.listed.get(f"random.{last_name}", "")
            return [function.replace("np.random.", "np.random.default_rng(0).")] if function else []
        return [f"np.{name}({attempt})" for attempt in ATTEMPTS]

    def ours(self, dtype: str | None = None, replaced: str = "") -> dict[str, Any]:
        """The operands as arrays of ours; those of the dtype `replaced` in another one if it is named."""
        scope: dict[str, Any] = {"np": self.mx.np}
        for name, value in self.operands.items():
            if isinstance(value, self.numpy.ndarray):
                array = self.mx.np.array(value, dtype=value.dtype)
                value = array.astype(dtype) if dtype and value.dtype.name == replaced else array
            scope[name] = value
        return scope

    def theirs(self) -> dict[str, Any]:
        copies = {k: v.copy() if isinstance(v, self.numpy.ndarray) else v for k, v in self.operands.items()}
        return {**copies, "np": self.numpy}

    def row(self, space: str, name: str) -> Row:
        """What calling the function tells."""
        row = Row(name, there=True)
        known = lookup(self.numpy, name) is not None
        for text in self.texts(space, name):
            if known and not accepted(lambda text=text: run(text, self.theirs())):
                continue
            if accepted(lambda text=text: self.run(text, self.ours())):
                row.called = text
                row.gradient = self.gradient(text)
                row.traceable = self.needs_no_values(text)
                row.dtypes = self.accepted_dtypes(text)
                break
        return row

    def run(self, text: str, scope: dict[str, Any]) -> Any:
        result = run(text, scope)
        self.mx.waitall()
        return result

    def common_calls(self) -> list[str]:
        """One call of each function of the table that NumPy and we accept."""
        found: dict[str, None] = {}
        lines = (ROOT / "tests/api/np.tsv").read_text().splitlines()[1:]
        with warnings.catch_warnings(), self.numpy.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            for line in lines:
                space, name, _, _, _, _, scope, *_ = line.split("\t")
                if space not in SPACES or scope == "out" or name.startswith("_"):
                    continue
                dotted = f"{space}.{name}".removeprefix("numpy.")
                thing = lookup(self.mx.np, dotted)
                if not callable(thing) or isinstance(thing, type):
                    continue
                known = lookup(self.numpy, dotted) is not None
                for text in self.texts(space, dotted):
                    if known and not accepted(lambda text=text: run(text, self.theirs())):
                        continue
                    if accepted(lambda text=text: self.run(text, self.ours())):
                        found[text] = None
                        break
        return list(found)

    def arrays(self, result: Any) -> list[Any]:
        if isinstance(result, self.mx.np.ndarray):
            return [result]
        return [array for item in result for array in self.arrays(item)] if isinstance(result, tuple | list) else []

    def gradient(self, text: str) -> str:
        """Whether a gradient arrives at an operand, and is not 0 everywhere."""
        scope = self.ours()
        variables = [value for array in scope.values() for value in self.arrays(array) if value.dtype.kind in "fc"]
        for value in variables:
            value.attach_grad()

        def differentiate() -> None:
            np = self.mx.np
            with self.mx.autograd.record():
                results = [array for array in self.arrays(run(text, scope)) if array.dtype.kind in "fc"]
                losses = []
                for result in results:
                    for part in (np.real(result), np.imag(result))[: 1 + (result.dtype.kind == "c")]:
                        # Weights without a pattern, so that a sum that does not change does not hide the gradient.
                        weights = np.sin(np.arange(part.size, dtype="float32") * 2.3 + 1).reshape(part.shape)
                        losses.append((part * weights).sum())
                loss = sum(losses)
            loss.backward()

        self.mx.np.random.seed(1)
        if not accepted(differentiate):
            return "no"
        gradients = [value.grad.asnumpy() for value in variables]
        found = self.numpy.concatenate([gradient.ravel() for gradient in gradients])
        return "yes" if self.numpy.any(self.numpy.isfinite(found) & (found != 0)) else "zero"

    def needs_no_values(self, text: str) -> bool:
        """Whether the call looks at no value."""
        scope = self.ours()
        self.mx.waitall()
        before = self.mx._core.waits()
        accepted(lambda: run(text, scope))
        return self.mx._core.waits() == before

    def accepted_dtypes(self, text: str) -> tuple[str, ...]:
        """The dtypes that the call takes in place of that of the first array of floats it names, else of the first."""
        arrays = [
            self.operands[word] for word in words(text) if isinstance(self.operands.get(word), self.numpy.ndarray)
        ]
        if not arrays:
            return ()
        replaced = next((array for array in arrays if array.dtype.kind == "f"), arrays[0]).dtype.name
        # A value may be out of its range in another type; what refuses the type itself raises TypeError.
        return tuple(d for d in DTYPES if not refused(lambda d=d: self.run(text, self.ours(d, replaced))))


def words(text: str) -> list[str]:
    return "".join(letter if letter.isalnum() or letter in "_." else " " for letter in text).replace(".", " . ").split()


def run(text: str, scope: dict[str, Any]) -> Any:
    return eval(text, scope)


def accepted(call: Callable[[], Any]) -> bool:
    try:
        call()
    except Exception:  # noqa: BLE001  whatever is raised, it is not accepted
        return False
    return True


def refused(call: Callable[[], Any]) -> bool:
    try:
        call()
    except TypeError:
        return True
    except Exception:  # noqa: BLE001  the type is not what is wrong
        return False
    return False


@cache
def rows() -> dict[str, list[Row]]:
    """The rows of each of NumPy's namespaces that are in scope."""
    import numpy

    import mxnet as mx

    probe = Probe()
    found: dict[str, list[Row]] = {space: [] for space in SPACES}
    faulthandler.dump_traceback_later(LIMIT_S, exit=True)
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for line in (ROOT / "tests/api/np.tsv").read_text().splitlines()[1:]:
            space, name, _, _, _, _, scope, *_ = line.split("\t")
            if space not in found or scope == "out" or name.startswith("_"):
                continue
            dotted = f"{space}.{name}".removeprefix("numpy.")
            thing = lookup(mx.np, dotted)
            function = callable(thing) and not isinstance(thing, type)
            found[space].append(probe.row(space, dotted) if function else Row(dotted, is_there(mx.np, dotted)))
    faulthandler.cancel_dump_traceback_later()
    mx.np.random.seed(0)
    return found


def totals(link: str = "") -> str:
    """The numbers in two sentences, with a link to the table if one is given."""
    every = [row for space in rows().values() for row in space]
    called = [row for row in every if row.called]
    there = sum(row.there for row in every)
    gradients, traceable = sum(row.gradient == "yes" for row in called), sum(row.traceable for row in called)
    table = f" ([table]({link}))" if link else ""
    return (
        f"{there} of the {len(every)} names of NumPy that are in scope are implemented{table}. Of the {len(called)} "
        f"functions and methods among them {gradients} have a gradient, and {traceable} never read an element on the "
        "host, so that a compiler can trace them."
    )


def page(mark: str) -> str:
    """The table."""
    lines = [f"<!-- {mark} -->", "", "# Coverage of NumPy", "", totals(), ""]
    lines += [
        "*There*: the name exists. *Gradient*: one arrives at an operand of the call; *zero* if it is 0 everywhere,",
        "as of functions that are constant between steps. *Traceable*: the call looks at no value. *Types*: those that",
        "the call takes for its first operand of floats, else for its first one. A dash: not a function, or one that",
        "only has effects.",
    ]
    for space, members in rows().items():
        there = sum(row.there for row in members)
        lines += ["", f"## {space}", "", f"{there} of {len(members)} names are there.", ""]
        lines += ["| name | there | gradient | traceable | types | call |", "|---|---|---|---|---|---|"]
        for row in members:
            traceable = ("yes" if row.traceable else "no") if row.called else "-"
            types = "all" if len(row.dtypes) == len(DTYPES) else ", ".join(row.dtypes)
            call = f"`{row.called}`".replace("|", "\\|") if row.called else "-"
            there_ = "yes" if row.there else "no"
            lines.append(f"| `{row.name}` | {there_} | {row.gradient or '-'} | {traceable} | {types or '-'} | {call} |")
    return "\n".join(lines) + "\n"
