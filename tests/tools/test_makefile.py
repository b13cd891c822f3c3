"""Messages of `make` when a tool that it needs is missing or too old. Nothing is installed here."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RUST = re.search(r'^rust-version = "([\d.]+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
TOOLS = ["sh", "sed", "cut", "sort", "head", "rm", "test", "printf", "echo", "find", "cat"]


@pytest.fixture
def make(tmp_path):
    """Run a target in a folder that holds only the Makefile, with only the programs given here on PATH."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    shutil.copy(ROOT / "Cargo.toml", tmp_path)
    programs = tmp_path / "programs"
    programs.mkdir()
    for tool in TOOLS:
        if found := shutil.which(tool):
            (programs / tool).symlink_to(found)

    def run(target, **scripts):
        for name, script in scripts.items():
            path = programs / name
            path.write_text(f"#!/bin/sh\n{script}\n")
            path.chmod(0o755)
        environment = {"PATH": str(programs), "HOME": os.environ.get("HOME", "/")}
        command = [shutil.which("make"), "--no-print-directory", target]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    return run


def test_missing_rust_is_one_line_that_says_how_to_get_it(make):
    done = make("rust")
    assert done.returncode != 0
    assert done.stderr.splitlines()[0].startswith(f"Rust {RUST} or newer is needed: get it with rustup")


def test_old_rust_names_both_versions(make):
    done = make("rust", cargo="echo 'cargo 1.80.1 (376290515 2024-07-16)'")
    assert done.returncode != 0
    assert done.stderr.splitlines()[0] == f"Rust {RUST} or newer is needed, found 1.80.1: run 'rustup update stable'"


@pytest.mark.parametrize("version", [f"{RUST}.0", "1.100.0", "2.0.0"])
def test_new_enough_rust_is_accepted(make, version):
    assert make("rust", cargo=f"echo 'cargo {version} (abc 2026-01-01)'").returncode == 0


def test_missing_python_is_one_line_that_says_how_to_get_it(make):
    done = make(".venv/bin/python")
    assert done.returncode != 0
    assert done.stderr.splitlines()[0].startswith("Python 3.11 or newer is needed: install it")


def test_python_that_is_too_old_or_only_pretends_is_passed_over(make):
    scripts = {"python3.14": "exit 127", "python3.13": "exit 1"}
    done = make(".venv/bin/python", **scripts, **{"python3.12": '[ "$2" = venv ] && echo made by "$0"; exit 0'})
    assert done.returncode == 0
    assert done.stdout.strip().endswith("/python3.12")


def test_python_without_venv_says_what_to_install(make):
    done = make(".venv/bin/python", python3='[ "$1" = -c ]')
    assert done.returncode != 0
    assert done.stderr.splitlines()[0].startswith("python3 cannot make a virtual environment")


def test_help_lists_every_target_that_people_use(make):
    listed = {line.split()[1] for line in make("help", expand="cat").stdout.splitlines()}
    assert {"demo", "test", "lint", "bench", "build", "docs", "gen", "clean"} <= listed
