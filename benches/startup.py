"""Time to import the package above NumPy's, against PyTorch, and the size of what is installed."""

import importlib.util
import statistics
import subprocess
import sys
import zlib
from pathlib import Path

import mxnet

RUNS = 11
ROOT = Path(__file__).resolve().parent.parent


def import_seconds(module: str, *before: str) -> float:
    """Seconds for `import module` in a fresh interpreter that has imported `before` already."""
    path = str(Path(mxnet.__file__).parent.parent)
    lines = [
        f"import sys; sys.path.insert(0, {path!r})",
        *(f"import {name}" for name in before),
        "import time; start = time.perf_counter()",
        f"import {module}; print(time.perf_counter() - start)",
    ]
    command = [sys.executable, "-c", "\n".join(lines)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    sides = {"numpy": lambda: import_seconds("numpy"), "mxnet": lambda: import_seconds("mxnet", "numpy")}
    if importlib.util.find_spec("torch"):
        sides["torch"] = lambda: import_seconds("torch", "numpy")
    times: dict[str, list[float]] = {name: [] for name in sides}
    for side in sides.values():
        side()  # files into the page cache
    for _ in range(RUNS):
        for name, side in sides.items():
            times[name].append(side())
    for name, column in times.items():
        what = "alone" if name == "numpy" else "above NumPy's"
        print(f"import {name:<6} {statistics.median(column) * 1e3:8.1f} ms {what}, best {min(column) * 1e3:.1f} ms")

    package = Path(mxnet.__file__).parent
    files = [path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    size = sum(path.stat().st_size for path in files)
    packed = sum(len(zlib.compress(path.read_bytes(), 6)) for path in files)
    print(f"package: {len(files)} files, {size / 1e6:.1f} MB, {packed / 1e6:.1f} MB deflated as in a wheel")
    for wheel in sorted((ROOT / "target" / "wheels").glob("*.whl")):
        print(f"wheel: {wheel.name} {wheel.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
