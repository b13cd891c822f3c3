"""Sphinx settings; `make docs` builds into docs/_build/html."""

import tomllib
from importlib.metadata import version as installed_version
from pathlib import Path

root = Path(__file__).resolve().parent.parent

project = tomllib.loads((root / "pyproject.toml").read_text())["project"]["name"]
version = release = installed_version(project)
author = f"the {project} authors"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "sphinx.ext.viewcode", "numpydoc"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build"]
myst_heading_anchors = 3
suppress_warnings = [
    "myst.xref_missing",  # links out of the documentation into the source tree
    "misc.highlighting_failure",  # sketches of Rust signatures that are not whole Rust
]

autodoc_member_order = "groupwise"
autodoc_typehints = "none"  # the docstrings name types with shapes
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
default_role = "code"

html_theme = "pydata_sphinx_theme"
html_title = f"{project} {version}"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {"show_toc_level": 2, "navigation_with_keys": False}


def write_module_pages() -> None:
    """One page for each public module, so that no list of modules has to be kept."""
    import pkgutil

    import mxnet

    folder = root / "docs" / "api" / "generated"
    folder.mkdir(exist_ok=True)
    found = (module.name for module in pkgutil.walk_packages(mxnet.__path__, "mxnet."))
    names = ["mxnet", *(name for name in found if not any(part.startswith("_") for part in name.split(".")))]
    for stale in set(folder.glob("*.rst")) - {folder / f"{name}.rst" for name in names}:
        stale.unlink()
    for name in names:
        options = "".join(f"   :{option}:\n" for option in ("members", "undoc-members", "show-inheritance"))
        text = f"{name}\n{'=' * len(name)}\n\n.. automodule:: {name}\n{options}"
        page = folder / f"{name}.rst"
        if not page.exists() or page.read_text() != text:
            page.write_text(text)


write_module_pages()
