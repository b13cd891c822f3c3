"""Licences of the crates that are linked into the wheel, and a list of them that machines read.

`python tools/licences.py` writes `THIRD_PARTY_LICENSES.txt` (the texts, each once, with the crates that have it)
and `sbom.cdx.json` (CycloneDX 1.5: name, version, licence, checksum). Both go into the wheel; `--check` fails if
one of them is not what the lock file says.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TEXTS = ROOT / "THIRD_PARTY_LICENSES.txt"
SBOM = ROOT / "sbom.cdx.json"
PACKAGE = "mxnet-python"

# Licences that may be linked into an Apache-2.0 program, as SPDX writes them.
ALLOWED = {
    "0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "ISC",
    "MIT", "MIT-0", "Unicode-3.0", "Unlicense", "Zlib",
}  # fmt: skip
NAMES = ("LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE")


@dataclass(frozen=True, order=True)
class Crate:
    """A crate of others that is linked."""

    name: str
    version: str
    licence: str
    checksum: str
    folder: Path


def crates() -> list[Crate]:
    """What the extension links on the platform that builds it; build tools and proc-macros are not in it."""
    command = [
        "cargo",
        "tree",
        "--locked",
        "-p",
        PACKAGE,
        "-e",
        "normal,no-proc-macro",
        "--prefix",
        "none",
        "-f",
        "{p}",
    ]
    tree = subprocess.check_output(command, cwd=ROOT, text=True)
    linked = {tuple(line.split()[:2]) for line in tree.splitlines() if line.strip()}
    metadata = subprocess.check_output(["cargo", "metadata", "--locked", "--format-version", "1"], cwd=ROOT)
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text(encoding="utf-8"))
    checksums = {(p["name"], p["version"]): p.get("checksum", "") for p in lock["package"]}
    found = []
    for package in json.loads(metadata)["packages"]:
        key = (package["name"], package["version"])
        if package["source"] is not None and (key[0], f"v{key[1]}") in linked:
            folder = Path(package["manifest_path"]).parent
            licence = (package["license"] or "").replace("/", " OR ").replace("  ", " ")
            found.append(Crate(*key, licence, checksums[key], folder))
    return sorted(found)


def is_allowed(licence: str) -> bool:
    """Whether one way to read an SPDX expression has allowed licences only."""
    ways = licence.replace("(", "").replace(")", "").split(" OR ")
    return any(all(part.strip() in ALLOWED for part in way.split(" AND ")) for way in ways)


def texts(found: list[Crate]) -> Iterator[str]:
    """The file of texts: each text once, under the crates that have it."""
    holders: dict[str, list[str]] = {}
    missing = []
    for crate in found:
        files = sorted(p for p in crate.folder.iterdir() if p.is_file() and p.name.upper().startswith(NAMES))
        for file in files:
            text = "\n".join(
                line.rstrip() for line in file.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            )
            holders.setdefault(text, []).append(f"{crate.name} {crate.version}")
        if not files:
            missing.append(f"{crate.name} {crate.version}: {crate.licence}")
    yield "Licences of the crates that are linked into this package. Written by tools/licences.py.\n"
    if missing:
        yield "Crates that bring no text; the licence that they name applies:\n\n  " + "\n  ".join(missing) + "\n"
    for text, crates_of_text in sorted(holders.items(), key=lambda item: item[1]):
        names = ", ".join(dict.fromkeys(crates_of_text))
        yield f"{'-' * 78}\n{names}\n{'-' * 78}\n\n{text}\n"


def sbom(found: list[Crate]) -> dict[str, Any]:
    """A CycloneDX document. It has no time and no serial number, so that the same lock file gives the same bytes."""
    version = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]["version"]
    components = [
        {
            "type": "library",
            "name": crate.name,
            "version": crate.version,
            "purl": f"pkg:cargo/{crate.name}@{crate.version}",
            "licenses": [{"expression": crate.licence}],
            "hashes": [{"alg": "SHA-256", "content": crate.checksum}],
        }
        for crate in found
    ]
    component = {"type": "library", "name": "mxnet", "version": version, "licenses": [{"expression": "Apache-2.0"}]}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": component},
        "components": components,
    }


def main(arguments: list[str]) -> int:
    """Write both files, or compare them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    check = parser.parse_args(arguments).check
    found = crates()
    faults = [
        f"{x.name} {x.version}: {x.licence or 'no licence'} is not allowed" for x in found if not is_allowed(x.licence)
    ]
    for path, content in ((TEXTS, "\n".join(texts(found))), (SBOM, json.dumps(sbom(found), indent=1) + "\n")):
        if not check:
            path.write_text(content, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != content:
            digest = hashlib.sha256(content.encode()).hexdigest()[:12]
            faults.append(f"{path.name} is not what Cargo.lock says ({digest}): run python tools/licences.py")
    print("\n".join(faults), end="\n" if faults else "")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
