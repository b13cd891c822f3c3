"""`mx.config` and `mx.runtime`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as onp
import pytest

import mxnet as mx
from mxnet import _core


def _restored() -> dict[str, object]:
    return {setting.name: setting.value for setting in mx.config.settings()}


def test_settings_are_attributes_with_types_and_origins() -> None:
    before = _restored()
    assert mx.config.num_threads == mx.config.get("num_threads")
    with mx.config(num_threads=1, promotion="numpy"):
        assert mx.config.num_threads == 1
        assert mx.config.origin("num_threads") == "program"
        assert mx.np.array(1.5).dtype == "float64" or (mx.np.ones(2) / 2).dtype == "float64"
    assert _restored() == before
    for setting in mx.config.settings():
        assert setting.variable == f"MXNET_{setting.name.upper()}"
        assert setting.doc.endswith(".")
        assert setting.name in repr(mx.config)
        assert setting.name in dir(mx.config)


def test_values_that_a_setting_does_not_take_are_refused() -> None:
    before = _restored()
    for name, value, message in [
        ("num_threads", 0, "a whole number from 1 to 4096, not 0"),
        ("num_threads", True, "a whole number from 1 to 4096, not true"),
        ("num_threads", "two", "a whole number"),
        ("num_threads", 1.5, "a whole number"),
        ("engine_mode", "fast", "one of adaptive, async, sync, not 'fast'"),
        ("debug_lines", 1, "true or false, not 1"),
        ("speed", 1, "there is no setting `speed`"),
    ]:
        with pytest.raises(ValueError, match=message):
            mx.config.set(name, value)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="one of"), mx.config(num_threads=1, engine_mode="fast"):
        pass
    with pytest.raises(AttributeError, match="there is no setting 'speed'"):
        _ = mx.config.speed
    assert _restored() == before


def test_toml_files_keep_what_was_chosen(tmp_path: Path) -> None:
    path = tmp_path / "mxnet.toml"
    before = _restored()
    with mx.config(engine_mode="sync", debug_lines=True, num_threads=1):
        mx.config.save(path)
    text = path.read_text()
    assert 'engine_mode = "sync"' in text
    assert "debug_lines = true" in text
    with mx.config(engine_mode="adaptive", debug_lines=False, num_threads=2):
        mx.config.load(path)
        assert (mx.config.engine_mode, mx.config.debug_lines, mx.config.num_threads) == ("sync", True, 1)
        assert mx.config.origin("engine_mode") == "file"
        path.write_text('[mxnet]\nengine_mode = "async"\nnum_threads = 0\n')
        with pytest.raises(ValueError, match="num_threads"):
            mx.config.load(path)
        assert mx.config.engine_mode == "sync"
    assert _restored() == before


@pytest.mark.parametrize("name", ['a"b.json', "C:\\traces\\new.json", "two\nlines\t\x01\x7f", "größe 🙂", "it's"])
def test_toml_files_keep_any_text(tmp_path: Path, name: str) -> None:
    path = tmp_path / "mxnet.toml"
    with mx.config(profiler_filename=name):
        mx.config.save(path)
    with mx.config(profiler_filename="other.json"):
        mx.config.load(path)
        assert mx.config.profiler_filename == name


def _other(setting: Any) -> bool | int | str:
    """A value that the setting takes and does not have."""
    if isinstance(setting.value, bool):
        return not setting.value
    if isinstance(setting.value, int):
        least, most = (int(bound) for bound in setting.values.split(" to "))
        return least if setting.value != least else min(least + 1, most)
    if setting.name == "blas":
        return "auto"  # the others need a library
    words = setting.values.split(", ")
    return "other.json" if words == ["any text"] else next(word for word in words if word != setting.value)


def test_each_setting_is_set_restored_and_kept_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mxnet.toml"
    for setting in mx.config.settings():
        name, other = setting.name, _other(setting)
        with mx.config(**{name: other}):
            assert (getattr(mx.config, name), mx.config.origin(name)) == (other, "program"), name
            mx.config.save(path)
        assert (mx.config.get(name), mx.config.origin(name)) == (setting.value, setting.origin), name
        with mx.config(**{name: setting.value}):
            mx.config.load(path)
            assert (mx.config.get(name), mx.config.origin(name)) == (other, "file"), name
        assert (mx.config.get(name), mx.config.origin(name)) == (setting.value, setting.origin), name


def test_each_setting_can_come_from_the_environment(tmp_path: Path) -> None:
    others = {setting.name: _other(setting) for setting in mx.config.settings()}
    code = "import json, mxnet as mx; print(json.dumps([[x.name, x.value, x.origin] for x in mx.config.settings()]))"
    given = {f"MXNET_{name.upper()}": str(value) for name, value in others.items()}
    environment = {"PYTHONPATH": ":".join(sys.path), **given}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == [[name, value, "environment"] for name, value in others.items()]
    assert done.stderr == ""
    assert (tmp_path / "other.json").exists()  # the profiler's file


def test_freed_memory_is_cached_up_to_the_limit() -> None:
    def cached() -> int:
        mx.cpu().empty_cache()
        mx.np.ones(1 << 20)
        return int(_core.memory_stats()["cached_bytes"])

    # Other threads may have freed small blocks meanwhile.
    with mx.config(memory_cache_bytes=0, engine_mode="sync"):
        assert cached() < 4 << 20
    with mx.config(memory_cache_bytes=64 << 20, engine_mode="sync"):
        assert cached() >= 4 << 20


def test_without_jit_compiled_functions_run_as_they_are() -> None:
    runs = []

    @mx.jit
    def function(x: mx.np.ndarray) -> mx.np.ndarray:
        runs.append(1)
        return x + 1

    x = mx.np.ones(2)
    for on, expected in (False, 3), (True, 4), (False, 7):
        with mx.config(jit=on):
            for _ in range(3):
                assert function(x).tolist() == [2, 2]
        assert len(runs) == expected


def test_debug_lines_name_the_line_that_issued_an_operation() -> None:
    for on in False, True:
        with mx.config(engine_mode="async", debug_lines=on):
            bound = mx.np.full((2,), 5, "int64")
            late = mx.np.random.randint(bound, bound)
            with pytest.raises(ValueError, match="low") as failed:
                late.asnumpy()
        assert ("test_config.py:" in str(failed.value)) == on


def test_without_the_plan_cache_calls_are_prepared_anew() -> None:
    x = mx.np.ones((2, 3, 5))
    for on in True, False:
        with mx.config(plan_cache=on):
            mx.np.tanh(x)
            hits, _ = _core.plan_counters()
            mx.np.tanh(x)
            assert _core.plan_counters()[0] - hits == on


def test_booleans_of_numpy_are_booleans() -> None:
    with mx.config(jit=onp.False_):
        assert mx.config.jit is False
    with pytest.raises(ValueError, match="a whole number from 1 to 4096, not true"):
        mx.config.num_threads = onp.True_
    assert mx.np.ones((2, 3)).sum(axis=0, keepdims=onp.True_).shape == (1, 3)


def test_a_toml_file_whose_mxnet_is_no_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mxnet.toml"
    path.write_text("mxnet = 3\n")
    with pytest.raises(ValueError, match="must be a table of settings, not 3"):
        mx.config.load(path)


def test_the_environment_gives_first_values_and_bad_ones_are_reported() -> None:
    code = "import mxnet as mx; print(mx.config.engine_mode, mx.config.origin('engine_mode'), mx.config.plan_cache)"
    environment = {"MXNET_ENGINE_MODE": "sync", "MXNET_PLAN_CACHE": "maybe"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": ":".join(sys.path), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["sync", "environment", "True"]
    assert "MXNET_PLAN_CACHE: config: `plan_cache` must be true or false, not 'maybe'" in done.stderr


def test_features_and_backends() -> None:
    features = mx.runtime.Features()
    assert [feature.name for feature in mx.runtime.feature_list()] == list(features)
    assert features.is_enabled("int64_tensor_size")
    assert not features.is_enabled("CUDA")
    assert features["CPU_SSE"].enabled == features.is_enabled("CPU_SSE")
    with pytest.raises(RuntimeError, match="there is no feature 'WINGS'"):
        features.is_enabled("WINGS")
    named = {backend.name: backend for backend in mx.runtime.backends()}
    assert named["cpu"].is_loaded
    assert not named["gpu"].is_loaded
    assert named["gpu"].reason
    assert named["builtin"].kind == "blas"
    assert named["builtin"].serves == ("matrix products",)
    assert named["cpu"].serves == ()
