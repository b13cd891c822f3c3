"""Libraries that are modules, or nearly, built from C text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from c_library import ROOT, run, tool

EXAMPLES = ROOT / "examples" / "modules"
INCLUDE = ROOT / "crates" / "module" / "include"

Build = Callable[[str, str], Path]


def builder(folder: Path) -> Build:
    """Builds modules from C text in a folder."""

    def make(name: str, source: str) -> Path:
        file, library = folder / f"{name}.c", folder / f"lib{name}.so"
        file.write_text(source)
        options = ["-shared", "-fPIC", "-std=c11", "-Wall", "-Werror", "-O2", f"-I{INCLUDE}"]
        run([tool("gcc"), *options, str(file), "-o", str(library)])
        return library

    return make


def built_by_rustc(name: str, folder: Path) -> Path:
    """One of the examples in Rust."""
    library = folder / f"lib{name}.so"
    options = ["--edition", "2024", "--crate-type", "cdylib", "-O", "-Dwarnings"]
    run([tool("rustc"), *options, str(EXAMPLES / f"{name}.rs"), "-o", str(library)])
    return library


_TEXT = """
#include <mxnet_module.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
MORE
static int32_t init(const mx_host *host, char *message, size_t capacity)
{
    (void)host; (void)message; (void)capacity;
    BODY
}
const mx_module *mx_module_entry(void);
const mx_module *mx_module_entry(void)
{
    static const mx_module module = {
        .size = sizeof(mx_module), .abi = VERSION, .name = "test", .version = "0", .init = init, FIELDS};
    return &module;
}
"""


def module(body: str = "return MX_MODULE_OK;", more: str = "", abi: str = "MX_MODULE_ABI", fields: str = "") -> str:
    """A module whose `init` has this body."""
    text = _TEXT.replace("BODY", body).replace("MORE", more)
    return text.replace("VERSION", abi).replace("FIELDS", fields)
