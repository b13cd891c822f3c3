"""Make a source distribution that builds without a network: `python tools/sdist.py [folder]`.

It is maturin's, with the sources of all crates in `vendor/` and a `.cargo/config.toml` that says so. Last it is
asked for its metadata with an empty cargo home, which fails if a crate is missing.

maturin leaves out the members of the workspace that the package does not need (the C library, the example of a
service), but copies the lock file as it is. `cargo --locked` refuses a lock file with crates that are not needed, so
these are removed.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONFIG = """# All crates are in vendor/: the build needs no network.
[source.crates-io]
replace-with = "vendored-sources"

[source.vendored-sources]
directory = "vendor"
"""


def reproducible(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """A member without the builder's user, group and time."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = 315532800  # 1980, the first that zip files know
    return member


def sources(folder: Path) -> Path:
    """Unpack maturin's distribution in `folder`, with a lock file of the crates that it needs, and return its path."""
    command = [sys.executable, "-m", "maturin", "sdist", "--out", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True)
    archive = next(folder.glob("*.tar.gz"))
    with tarfile.open(archive) as file:
        file.extractall(folder, filter="data")
    tree = folder / archive.name.removesuffix(".tar.gz")
    subprocess.run(["cargo", "metadata", "--format-version", "1"], cwd=tree, check=True, stdout=subprocess.DEVNULL)
    if added := locked(tree) - locked(ROOT):
        raise SystemExit(f"not in Cargo.lock: {', '.join(' '.join(map(str, each)) for each in sorted(added))}")
    return tree


def locked(tree: Path) -> set[tuple[str, str, str]]:
    """Name, version and checksum of each crate in the lock file of `tree`; the checksum of our own is empty."""
    packages = tomllib.loads((tree / "Cargo.lock").read_text(encoding="utf-8"))["package"]
    return {(each["name"], each["version"], each.get("checksum", "")) for each in packages}


def vendored(folder: Path) -> Path:
    """Write the distribution to `folder` and return its path."""
    with tempfile.TemporaryDirectory() as scratch:
        tree = sources(Path(scratch))
        subprocess.run(
            ["cargo", "vendor", "--locked", "--quiet", "vendor"], cwd=tree, check=True, stdout=subprocess.DEVNULL
        )
        (tree / ".cargo").mkdir(exist_ok=True)
        (tree / ".cargo" / "config.toml").write_text(CONFIG, encoding="utf-8")
        check(tree)
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / f"{tree.name}.tar.gz"
        with tarfile.open(target, "w:gz") as file:
            file.add(tree, arcname=tree.name, filter=reproducible)
    return target


def check(tree: Path) -> None:
    """Resolve all crates of an unpacked distribution with nothing but what is in it."""
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "CARGO_HOME": home, "CARGO_NET_OFFLINE": "true"}
        command = ["cargo", "metadata", "--locked", "--offline", "--format-version", "1"]
        subprocess.run(command, cwd=tree, env=environment, check=True, stdout=subprocess.DEVNULL)


def main(arguments: list[str]) -> int:
    """Write the distribution and say where it is."""
    target = vendored(Path(arguments[0]) if arguments else ROOT / "dist")
    print(f"{target}: {target.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    if shutil.which("cargo") is None:
        sys.exit("cargo is needed to collect the crates")
    sys.exit(main(sys.argv[1:]))
