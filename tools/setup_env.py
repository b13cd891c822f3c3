"""Install the requirements of the named extras into the environment that runs this file.

What is installed is remembered by the text of the requirements, so a second run does nothing and needs no network.
Usage: `.venv/bin/python tools/setup_env.py build dev docs`.
"""

import hashlib
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def requirements(project: dict, extra: str) -> list[str]:
    """The package's own requirements and those of one extra, as pyproject.toml lists them."""
    extras = project["optional-dependencies"]
    if extra not in extras:
        raise SystemExit(f"pyproject.toml has no extra `{extra}`; it has {', '.join(sorted(extras))}")
    return [*project["dependencies"], *extras[extra]]


def main(extras: list[str]) -> int:
    if sys.prefix == sys.base_prefix:
        raise SystemExit("run this with the Python of .venv, which `make env` makes")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    missing: dict[Path, str] = {}
    packages: list[str] = []
    for extra in extras:
        wanted = requirements(project, extra)
        digest = hashlib.sha256("\n".join(wanted).encode()).hexdigest()
        stamp = Path(sys.prefix) / f".installed-{extra}"
        if not stamp.exists() or stamp.read_text() != digest:
            missing[stamp] = digest
            packages += wanted
    if not missing:
        return 0
    names = ", ".join(stamp.name.removeprefix(".installed-") for stamp in missing)
    print(f"installing requirements into {Path(sys.prefix).name}: {names}", flush=True)
    code = subprocess.call([sys.executable, "-m", "pip", "install", "--quiet", *dict.fromkeys(packages)])
    if code:
        print(f"pip could not install the requirements (is there a network?): {names}", file=sys.stderr)
        return code
    for stamp, digest in missing.items():
        stamp.write_text(digest)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
