"""Check what `make build` and `make library` made: `python tools/wheels.py dist`. Size, the oldest system, licences.

`auditwheel` says which libraries and symbols an extension needs, and so on which systems it runs. It knows wheels only:
the versions that the C library needs are read from its ELF file.
"""

import json
import re
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

LIMIT_BYTES = 25_000_000
# glibc of Debian 10, Ubuntu 18.10, RHEL 8 and later systems.
NEWEST_GLIBC = (2, 28)
LICENCES = ("LICENSE", "THIRD_PARTY_LICENSES.txt", "sbom.cdx.json")
# glibc unwinds threads with it. A library that has another unwinder inside crashes then.
UNWINDER = "libgcc_s.so.1"


def glibc_of(tags: str) -> tuple[int, int] | None:
    """The oldest glibc that a file name or a platform tag names as manylinux; None if it names none."""
    found = [(int(major), int(minor)) for major, minor in re.findall(r"manylinux_(\d+)_(\d+)", tags)]
    return min(found, default=None)


def tag_of(report: str) -> str:
    """The platform tag in a report of `auditwheel show --json`; empty if there is none."""
    try:
        return str(json.loads(report).get("overall_tag", ""))
    except ValueError:
        return ""


def uses_unwinder(library: bytes) -> bool:
    """Whether an ELF file names the unwinder of glibc among the libraries that it needs."""
    return f"\0{UNWINDER}\0".encode() in library


def problems(wheel: Path, report: str) -> list[str]:
    """What is wrong with a wheel of which `auditwheel show --json` says this."""
    found = []
    size = wheel.stat().st_size
    if size > LIMIT_BYTES:
        found.append(f"it has {size} bytes, {LIMIT_BYTES} are allowed")
    required = f"manylinux_{NEWEST_GLIBC[0]}_{NEWEST_GLIBC[1]}"
    named, needed = glibc_of(wheel.name), glibc_of(tag_of(report))
    if named is None or named > NEWEST_GLIBC:
        found.append(f"its name must have {required} or an older tag")
    if needed is None or needed > NEWEST_GLIBC:
        found.append(f"auditwheel must find it consistent with {required}, it says:\n{report.strip()}")
    with zipfile.ZipFile(wheel) as archive:
        inside = archive.namelist()
        for name in inside:
            if name.endswith(".so") and not uses_unwinder(archive.read(name)):
                found.append(f"{name} is not linked to {UNWINDER}")
    missing = [name for name in LICENCES if not any(re.search(rf"licenses/{re.escape(name)}$", one) for one in inside)]
    if missing:
        found.append(f"it lacks {', '.join(missing)}")
    return found


def versions_needed(library: Path) -> list[str]:
    """The symbol versions, such as 'GLIBC_2.17', that an ELF file (64 bits, little-endian) needs of other libraries."""
    data = library.read_bytes()
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError(f"{library} is no ELF file of 64 bits, little-endian")
    start, size, count = (*struct.unpack_from("<Q", data, 0x28), *struct.unpack_from("<HH", data, 0x3A))
    # Of each section: type, offset in the file, section that it refers to, number of entries.
    sections = []
    for i in range(count):
        header = struct.unpack_from("<IIQQQQIIQQ", data, start + i * size)
        sections.append((header[1], header[4], header[6], header[7]))
    found = []
    for kind, offset, texts, number in sections:
        if kind != 0x6FFFFFFE:  # SHT_GNU_verneed
            continue
        for _ in range(number):
            _, num_versions, _, first, following = struct.unpack_from("<HHIII", data, offset)
            at = offset + first
            for _ in range(num_versions):
                *_, name, next_version = struct.unpack_from("<IHHII", data, at)
                begin = sections[texts][1] + name
                found.append(data[begin : data.index(b"\0", begin)].decode())
                at += next_version
            offset += following
    return sorted(set(found))


def library_problems(library: Path) -> list[str]:
    """What is wrong with a shared library that lies beside its licences."""
    versions = versions_needed(library)
    newer = []
    for version in versions:
        match = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?", version)
        # GLIBC_PRIVATE differs with each release; GLIBC_ABI_... are of new ones.
        if version.startswith("GLIBC_") and (match is None or (int(match[1]), int(match[2])) > NEWEST_GLIBC):
            newer.append(version)
    found = [f"it needs {', '.join(newer)}"] if newer else []
    if not uses_unwinder(library.read_bytes()):
        found.append(f"it is not linked to {UNWINDER}")
    missing = [name for name in LICENCES if not library.with_name(name).exists()]
    return [*found, f"beside it are not {', '.join(missing)}"] if missing else found


def main(folder: str) -> int:
    """Check all wheels and the C library of a folder."""
    wheels = sorted(Path(folder).glob("*.whl"))
    libraries = sorted(Path(folder).glob("libmxnet.so"))
    if not wheels + libraries:
        print(f"there is no wheel and no libmxnet.so in {folder}", file=sys.stderr)
        return 1
    failed = False
    for library in libraries:
        wrong = library_problems(library)
        failed = failed or bool(wrong)
        print(f"{library.name}: {library.stat().st_size} bytes: {'; '.join(wrong) or 'fine'}")
    for wheel in wheels:
        command = [sys.executable, "-m", "auditwheel", "show", "--json", str(wheel)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        wrong = problems(wheel, done.stdout if done.returncode == 0 else done.stdout + done.stderr)
        failed = failed or bool(wrong)
        print(f"{wheel.name}: {wheel.stat().st_size} bytes of {LIMIT_BYTES} allowed: {'; '.join(wrong) or 'fine'}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
