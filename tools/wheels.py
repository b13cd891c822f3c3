"""Check wheels: `python tools/wheels.py dist`. Size, the oldest system they run on, licences.

`auditwheel` says which libraries and symbols an extension needs, and so on which systems it runs.
"""

import re
import subprocess
import sys
import zipfile
from pathlib import Path

LIMIT_BYTES = 25_000_000
# glibc of Debian 10, Ubuntu 18.10, RHEL 8 and later systems.
NEWEST_GLIBC = (2, 28)
LICENCES = ("LICENSE", "THIRD_PARTY_LICENSES.txt", "sbom.cdx.json")


def glibc_of(tags: str) -> tuple[int, int] | None:
    """The oldest glibc that a file name or a report of auditwheel names as manylinux; None if it names none."""
    found = [(int(major), int(minor)) for major, minor in re.findall(r"manylinux_(\d+)_(\d+)", tags)]
    return min(found, default=None)


def problems(wheel: Path, report: str) -> list[str]:
    """What is wrong with a wheel of which auditwheel says this."""
    found = []
    size = wheel.stat().st_size
    if size > LIMIT_BYTES:
        found.append(f"it has {size} bytes, {LIMIT_BYTES} are allowed")
    required = f"manylinux_{NEWEST_GLIBC[0]}_{NEWEST_GLIBC[1]}"
    named, needed = glibc_of(wheel.name), glibc_of(report)
    if named is None or named > NEWEST_GLIBC:
        found.append(f"its name must have {required} or an older tag")
    if needed is None or needed > NEWEST_GLIBC:
        found.append(f"auditwheel must find it consistent with {required}, it says:\n{report.strip()}")
    with zipfile.ZipFile(wheel) as archive:
        inside = archive.namelist()
    missing = [name for name in LICENCES if not any(re.search(rf"licenses/{re.escape(name)}$", one) for one in inside)]
    if missing:
        found.append(f"it lacks {', '.join(missing)}")
    return found


def main(folder: str) -> int:
    """Check all wheels of a folder."""
    wheels = sorted(Path(folder).glob("*.whl"))
    if not wheels:
        print(f"there is no wheel in {folder}", file=sys.stderr)
        return 1
    failed = False
    for wheel in wheels:
        command = [sys.executable, "-m", "auditwheel", "show", str(wheel)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        wrong = problems(wheel, done.stdout or done.stderr)
        failed = failed or bool(wrong)
        print(f"{wheel.name}: {wheel.stat().st_size} bytes of {LIMIT_BYTES} allowed: {'; '.join(wrong) or 'fine'}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
