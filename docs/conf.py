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
    "ref.ref",  # labels of NumPy's manual, in the docstrings of what is NumPy's own
]

autodoc_member_order = "groupwise"
autodoc_typehints = "none"  # the docstrings name types with shapes
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
default_role = "code"

html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["wrap.css"]
html_title = f"{project} {version}"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {"show_toc_level": 2, "navigation_with_keys": False}


def contract_names() -> dict[str, object]:
    """What the tables of the public API list and the package has, by its whole name."""
    import inspect
    import sys

    import mxnet

    sys.path.append(str(root / "tools"))
    import contract

    homes, found = {"np": "numpy", "npx": "numpy_extension"}, {}
    for name in contract.read_names(root / "tests/api"):
        thing = contract.find(mxnet, name.path)
        first, _, rest = name.path.partition(".")
        special = name.path.rpartition(".")[2].startswith("__")
        if thing is not contract.MISSING and not inspect.ismodule(thing) and not special:
            found[".".join(filter(None, ("mxnet", homes.get(first, first), rest)))] = thing
    return found


def public_modules() -> list[str]:
    import pkgutil

    import mxnet

    found = (module.name for module in pkgutil.walk_packages(mxnet.__path__, "mxnet."))
    return ["mxnet", *(name for name in found if not is_private(name))]


def is_private(name: str) -> bool:
    return any(part.startswith("_") for part in name.split("."))


def entry(module: str, name: str, found: object) -> list[str]:
    """What the page of a module says about one name."""
    import inspect

    home = getattr(found, "__module__", None) or module
    is_foreign = home.partition(".")[0] != "mxnet"
    if inspect.isclass(found):
        if home != module and (is_foreign or not is_private(home)):
            return [f".. py:data:: {name}", "", f"   The class :class:`{home}.{found.__name__}`.", ""]
        options = ["   :members:", "   :undoc-members:", "   :show-inheritance:"]
        # What a private base has is described nowhere else.
        ancestors = {base: is_private(f"{base.__module__}.{base.__name__}") for base in found.__mro__[1:]}
        if any(private for base, private in ancestors.items() if base.__module__.startswith("mxnet.")):
            described = ", ".join(base.__name__ for base, private in ancestors.items() if not private)
            options.append(f"   :inherited-members: {described}")
        return [f".. autoclass:: {module}.{name}", *options, ""]
    if is_foreign and callable(found):
        return [f".. py:function:: {name}", "", f"   The function of `{home.partition('.')[0]}`.", ""]
    if callable(found):
        return [f".. autofunction:: {module}.{name}", ""]
    described = inspect.getdoc(found) if type(found).__module__.startswith("mxnet.") else None
    lines = [f".. py:data:: {name}"]
    if described is None:
        lines.append(f"   :value: {' '.join(repr(found).split())[:100]}")
    return [*lines, "", *(f"   {line}" for line in (described or "").split("\n\n")[0].splitlines()), ""]


def page(name: str) -> str:
    """The page of a module: its description, and every public name it has, wherever that is defined."""
    import importlib
    import inspect

    module = importlib.import_module(name)
    listed = getattr(module, "__all__", None) or [
        member
        for member, found in vars(module).items()
        if f"{name}.{member}" in CONTRACT or getattr(found, "__module__", None) == name
    ]
    # A module may have the name of a function that its package shows: then the function is the one that links lead to.
    parent, _, last = name.rpartition(".")
    is_hidden = bool(parent) and not inspect.ismodule(getattr(importlib.import_module(parent), last, module))
    index = ["   :no-index:"] if is_hidden else []
    lines = [name, "=" * len(name), "", f".. automodule:: {name}", "   :no-members:", *index, ""]
    methods = {path.rpartition(".")[0] for path in CONTRACT}
    listed = {*listed, *(member for member in vars(module) if f"{name}.{member}" in methods)}
    for member in sorted(listed):
        found = getattr(module, member, None)
        has_members = f"{name}.{member}" in methods
        if not inspect.ismodule(found) and (has_members or not member.startswith("_")):
            lines += entry(name, member, found)
    return "\n".join(lines)


def write_module_pages() -> None:
    """One page for each public module, so that no list of modules or names has to be kept."""
    folder = root / "docs" / "api" / "generated"
    folder.mkdir(exist_ok=True)
    names = public_modules()
    for stale in set(folder.glob("*.rst")) - {folder / f"{name}.rst" for name in names}:
        stale.unlink()
    for name in names:
        path, text = folder / f"{name}.rst", page(name)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def check_names(app, error) -> None:
    """Warn of every public name of the contract that no page lists."""
    import inspect

    from sphinx.util import logging

    import mxnet

    listed = set() if error else {name for name, *_ in app.env.domains["py"].get_objects()}
    # The guide's page of migration lists them.
    deprecated = {*(f"mxnet.{name}" for name in mxnet._OLD), "mxnet.numpy_extension.reset_np", "mxnet.log.getLogger"}
    deprecated.add("mxnet.gluon.data.dataloader.default_mp_batchify_fn")
    for path, found in {} if error else CONTRACT.items():
        if path in deprecated:
            continue
        owner_path, _, member = path.rpartition(".")
        if path in listed or f"{getattr(found, '__module__', None)}.{member}" in listed:
            continue
        # An inherited method is listed with the class that defines it; NumPy's classes are described by NumPy.
        owner = CONTRACT.get(owner_path)
        if inspect.isclass(owner):
            bases = [f"{base.__module__}.{base.__name__}.{member}" for base in owner.__mro__]
            if owner.__module__ == "numpy" or any(base in listed for base in bases):
                continue
        logging.getLogger(__name__).warning("no page lists %s", path)


CONTRACT = contract_names()


def setup(app) -> None:
    app.connect("build-finished", check_names)


write_module_pages()
