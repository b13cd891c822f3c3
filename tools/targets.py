"""Type-check the workspace for other platforms: `python tools/targets.py`.

Only platforms whose standard library is installed can be checked (`rustup target add NAME`); the others are named
with the reason. Nothing is linked, so no C compiler for the platform is needed.
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGETS = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "aarch64-apple-darwin", "x86_64-pc-windows-msvc")


def is_installed(target: str) -> bool:
    """Whether the standard library for `target` is there."""
    sysroot = subprocess.check_output(["rustc", "--print", "target-libdir", "--target", target], text=True).strip()
    return Path(sysroot).exists()


def main() -> int:
    """Check every platform that can be checked."""
    failed = []
    for target in TARGETS:
        if not is_installed(target):
            print(f"{target}: skipped, its standard library is not installed: rustup target add {target}", flush=True)
            continue
        # Modules, the simulated device, the C library and the Python module use functions of Unix.
        parts = ["-p", "mxnet", "--no-default-features", "-p", "mxnet-cuda"] if "windows" in target else ["--workspace"]
        command = ["cargo", "check", "--locked", *parts, "--target", target]
        # PyO3 asks no interpreter: one of the target is not there, and the limited API is the same for all.
        environment = {**os.environ, "PYO3_NO_PYTHON": "1", "PYO3_CROSS_PYTHON_VERSION": "3.11"}
        if subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode:
            failed.append(target)
        else:
            print(f"{target}: ok", flush=True)
    print(f"failed: {', '.join(failed)}" if failed else "all that could be checked are fine")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
