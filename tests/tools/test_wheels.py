"""`tools/wheels.py`: which wheels may be published."""

import zipfile
from pathlib import Path

import pytest

import wheels

FINE = 'mxnet-2.0.0.whl is consistent with the following platform tag: "manylinux_2_28_x86_64".'


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "mxnet-2.0.0-cp311-abi3-manylinux_2_28_x86_64.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name in wheels.LICENCES:
            archive.writestr(f"mxnet-2.0.0.dist-info/licenses/{name}", "text")
    return path


def test_a_wheel_for_older_systems_with_licences_is_fine(wheel: Path) -> None:
    assert wheels.problems(wheel, FINE) == []
    assert wheels.problems(wheel, FINE.replace("2_28", "2_17")) == []


def test_what_only_new_systems_have_is_a_problem(wheel: Path) -> None:
    (found,) = wheels.problems(wheel, FINE.replace("2_28", "2_35"))
    assert "must find it consistent with manylinux_2_28" in found
    (found,) = wheels.problems(wheel, 'platform tag: "linux_x86_64"')
    assert "linux_x86_64" in found
    newer = wheel.rename(wheel.with_name("mxnet-2.0.0-cp311-abi3-manylinux_2_34_x86_64.whl"))
    assert wheels.problems(newer, FINE) == ["its name must have manylinux_2_28 or an older tag"]


def test_size_and_licences_are_checked(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheels, "LIMIT_BYTES", 10)
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("mxnet-2.0.0.dist-info/licenses/LICENSE", "text")
    size, licences = wheels.problems(wheel, FINE)
    assert "10 are allowed" in size
    assert licences == "it lacks THIRD_PARTY_LICENSES.txt, sbom.cdx.json"


def test_a_folder_without_wheels_fails(tmp_path: Path) -> None:
    assert wheels.main(str(tmp_path)) == 1
