"""`tools/wheels.py`: which wheels may be published."""

import json
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

import wheels
from mxnet import _core

FILE = "mxnet-2.0.0-cp311-abi3-manylinux_2_28_x86_64.whl"


def report(tag: str) -> str:
    """What `auditwheel show --json` prints, in part."""
    return json.dumps(
        {
            "version": 1,
            "wheel": FILE,
            "pure": False,
            "overall_tag": tag,
            "policy_upgrades": {"manylinux_2_17_x86_64": {}},
        }
    )


FINE = report("manylinux_2_28_x86_64")


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / FILE
    with zipfile.ZipFile(path, "w") as archive:
        for name in wheels.LICENCES:
            archive.writestr(f"mxnet-2.0.0.dist-info/licenses/{name}", "text")
    return path


def test_a_wheel_for_older_systems_with_licences_is_fine(wheel: Path) -> None:
    assert wheels.problems(wheel, FINE) == []
    assert wheels.problems(wheel, report("manylinux_2_17_x86_64")) == []


def test_what_only_new_systems_have_is_a_problem(wheel: Path) -> None:
    no_report = f"{wheel}: Traceback"
    for said in [report("manylinux_2_35_x86_64"), report("linux_x86_64"), json.dumps({"error": FILE}), no_report]:
        (found,) = wheels.problems(wheel, said)
        assert "must find it consistent with manylinux_2_28" in found
        assert said in found
    newer = wheel.rename(wheel.with_name("mxnet-2.0.0-cp311-abi3-manylinux_2_34_x86_64.whl"))
    assert wheels.problems(newer, FINE) == ["its name must have manylinux_2_28 or an older tag"]


def test_size_and_licences_are_checked(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheels, "LIMIT_BYTES", 10)
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("mxnet-2.0.0.dist-info/licenses/LICENSE", "text")
    size, licences = wheels.problems(wheel, FINE)
    assert "10 are allowed" in size
    assert licences == "it lacks THIRD_PARTY_LICENSES.txt, sbom.cdx.json"


def test_an_extension_with_another_unwinder_is_a_problem(wheel: Path) -> None:
    for names, problems in ((b"\0libm.so.6\0libgcc_s.so.1\0", []), (b"\0libm.so.6\0", ["libgcc_s.so.1"])):
        with zipfile.ZipFile(wheel, "a") as archive:
            archive.writestr(f"mxnet/_core{len(problems)}.so", names)
        assert wheels.problems(wheel, FINE) == [f"mxnet/_core1.so is not linked to {name}" for name in problems]


def test_versions_that_a_library_needs_are_those_that_readelf_shows() -> None:
    readelf = shutil.which("readelf")
    if readelf is None:
        pytest.skip("readelf is not installed")
    path = Path(_core.__file__)
    shown = subprocess.check_output([readelf, "--version-info", "--wide", str(path)], text=True)
    needs = shown[shown.index("Version needs section") :]
    expected = re.findall(r"Name: (\S+)\s+Flags", needs)
    assert any(version.startswith("GLIBC_2.") for version in expected)
    assert wheels.versions_needed(path) == sorted(set(expected))


def test_a_library_for_new_systems_or_without_licences_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "libmxnet.so"
    for name in wheels.LICENCES:
        library.with_name(name).touch()
    monkeypatch.setattr(wheels, "versions_needed", lambda _: ["GCC_3.0", "GLIBC_2.2.5", "GLIBC_2.28"])
    library.write_bytes(b"\0libm.so.6\0")
    assert wheels.library_problems(library) == ["it is not linked to libgcc_s.so.1"]
    library.write_bytes(b"\0libm.so.6\0libgcc_s.so.1\0")
    assert wheels.library_problems(library) == []
    library.with_name("LICENSE").unlink()
    assert wheels.library_problems(library) == ["beside it are not LICENSE"]
    library.with_name("LICENSE").touch()
    monkeypatch.setattr(wheels, "versions_needed", lambda _: ["GLIBC_2.28", "GLIBC_2.29", "GLIBC_ABI_DT_RELR"])
    assert wheels.library_problems(library) == ["it needs GLIBC_2.29, GLIBC_ABI_DT_RELR"]


def test_another_file_is_no_library(tmp_path: Path) -> None:
    library = tmp_path / "libmxnet.so"
    library.write_bytes(b"MZ" + bytes(100))
    with pytest.raises(ValueError, match="no ELF file"):
        wheels.versions_needed(library)


def test_a_folder_without_wheels_fails(tmp_path: Path) -> None:
    assert wheels.main(str(tmp_path)) == 1
