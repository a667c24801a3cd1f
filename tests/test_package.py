"""The package as a whole: what it exports, what importing it loads, and which way its imports point."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import slime_logging

ROOT = Path(slime_logging.__file__).parent
VENDORS = {
    "wandb",
    "torch",
    "ray",
    "megatron",
    "mlflow",
    "swanlab",
    "trackio",
    "tensorboard",
    "tensorboardX",
    "numpy",
}

MAX_FILE_LINES, MAX_CLASS_METHODS, MAX_FUNCTION_LINES = 250, 12, 40

MAY_IMPORT = {
    "errors": set(),
    "_version": set(),
    "values": {"values"},
    "redaction": {"errors", "redaction", "values"},
    "settings": {"errors", "redaction", "settings", "values"},
    "roles": {"errors", "redaction", "roles", "values"},
    "layout": {"errors", "layout", "redaction", "roles", "values"},
    "record": {"errors", "record", "redaction", "values"},
    "backends": {"backends", "errors", "layout", "settings", "values"},
    "delivery": {"backends", "delivery", "errors", "layout", "record", "redaction", "values"},
    "hosts": {"errors", "hosts", "record", "values"},
    "session": {
        "backends",
        "delivery",
        "errors",
        "hosts",
        "layout",
        "record",
        "redaction",
        "session",
        "settings",
        "values",
    },
    "run": {"backends", "errors", "hosts", "layout", "redaction", "session", "settings"},
    "joining": {"errors", "layout", "redaction", "run", "session", "settings"},
    "trinity": {"joining", "run", "trinity"},
    "verl": {"joining", "run"},
    "tracking": {"errors", "hosts", "redaction", "session", "settings"},
    "slime": {
        "layout",
        "record",
        "redaction",
        "roles",
        "session",
        "settings",
        "slime",
        "tracking",
        "values",
    },
    "demo": {"", "backends", "cli", "demo", "layout", "roles", "settings", "values"},
    "report": {"backends", "delivery", "layout", "record", "redaction", "report", "values"},
    "cli": {
        "",
        "backends",
        "cli",
        "delivery",
        "demo",
        "errors",
        "hosts",
        "layout",
        "record",
        "redaction",
        "report",
        "roles",
        "session",
        "settings",
        "slime",
        "values",
    },
}
"""Which rooms a room may import; everything not listed is an arrow the wrong way."""


def modules() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def imports(path: Path, *, top_only: bool) -> set[str]:
    """Absolute names of the modules that a file imports; with `top_only` at import time, outside of functions."""
    tree = ast.parse(path.read_text())
    nodes = list(_import_time(tree)) if top_only else list(ast.walk(tree))
    package = ("slime_logging", *path.relative_to(ROOT).parts[:-1])
    names = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            prefix = ".".join([*base, *([node.module] if node.module else [])])
            names |= {prefix} if node.module else {f"{prefix}.{alias.name}" for alias in node.names}
    return names


def _import_time(tree: ast.AST):
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        yield node
        yield from _import_time(node)


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_one_way(path):
    room = path.relative_to(ROOT).parts[0].removesuffix(".py")
    if room == "__init__":
        return
    for name in imports(path, top_only=False):
        if name == "slime_logging" or name.startswith("slime_logging."):
            other = name.split(".")[1] if "." in name else ""
            assert other in MAY_IMPORT[room], f"{path}: {name}"


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_vendors_are_imported_inside_the_function_that_opens_them(path):
    if "demo" in path.parts:
        return
    loaded = {name.split(".")[0] for name in imports(path, top_only=True)}
    assert not loaded & VENDORS


def test_no_room_has_grown_too_large_to_read():
    """At most 250 lines a file, 12 methods a class, 40 lines a function beside its docstring."""
    large = []
    for path in modules():
        text = path.read_text()
        if (size := text.count("\n")) > MAX_FILE_LINES:
            large.append(f"{path}: {size} lines")
        for node in ast.walk(ast.parse(text)):
            functions = (ast.FunctionDef, ast.AsyncFunctionDef)
            if isinstance(node, ast.ClassDef):
                size = sum(isinstance(one, functions) for one in node.body)
                if size > MAX_CLASS_METHODS:
                    large.append(f"{path}: {node.name} has {size} methods")
            elif isinstance(node, functions):
                doc = node.body[0] if ast.get_docstring(node) else None
                size = node.end_lineno - node.lineno + 1
                size -= doc.end_lineno - doc.lineno + 1 if doc else 0
                if size > MAX_FUNCTION_LINES:
                    large.append(f"{path}: {node.name} has {size} lines")
    assert large == []


def test_importing_the_package_loads_no_vendor_and_no_terminal_library():
    code = "import sys, slime_logging, slime_logging.tracking; print(sorted({m.split('.')[0] for m in sys.modules}))"
    loaded = set(ast.literal_eval(subprocess.check_output([sys.executable, "-c", code], text=True)))
    assert not loaded & (VENDORS | {"rich", "typer", "ruamel", "jinja2", "psutil"})


def test_every_public_name_is_found_when_it_is_first_asked_for():
    code = "import slime_logging as s; print([n for n in s.__all__ if getattr(s, n, None) is None])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"
    code = (
        "import sys, slime_logging; print(len([m for m in sys.modules if m.startswith('slime_')]))"
    )
    assert int(subprocess.check_output([sys.executable, "-c", code], text=True)) <= 2


def test_the_public_names_are_these():
    assert all(hasattr(slime_logging, name) for name in slime_logging.__all__)
    assert {
        "init_tracking",
        "log",
        "log_config",
        "finish_tracking",
        "init_wandb_primary",
        "init_wandb_secondary",
        "parse_megatron_role_args",
        "add_tracking_arguments",
        "tracked",
        "RoleConfigError",
    } <= set(slime_logging.__all__)


def test_every_public_name_is_documented():
    for name in slime_logging.__all__:
        if name != "__version__":
            assert (getattr(slime_logging, name).__doc__ or "").strip(), name


def test_the_marker_for_type_checkers_is_shipped():
    assert (ROOT / "py.typed").exists()


def test_the_tracker_table_and_the_switches_agree():
    from slime_logging.backends import new_backend
    from slime_logging.backends.table import BACKENDS
    from slime_logging.settings.options import TRACKERS

    assert tuple(BACKENDS) == TRACKERS
    assert {name: new_backend(name).name for name in TRACKERS} == {name: name for name in TRACKERS}


def test_the_extras_say_what_is_checked_at_the_start():
    """One truth about the oldest versions: those in the table are those that pip is asked for."""
    import re

    from slime_logging.backends.table import BACKENDS

    text = (ROOT.parent / "pyproject.toml").read_text()
    for backend, row in BACKENDS.items():
        if (package := row.package) is None:
            continue
        (asked,) = re.findall(rf'^{backend} = \["([^"]+)"\]', text, re.MULTILINE)
        assert asked.partition(",")[0] == f"{package.distribution}>={package.oldest}"
