"""The rules of the house, checked on the source."""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "conformance"
FILES = sorted(file for file in PACKAGE.rglob("*.py") if "data" not in file.parts)
CASES = sorted(file for file in (ROOT / "cases").rglob("*.py") if "golden" not in file.parts)
MODULES = {
    ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file
    for file in FILES
}
LAYERS = (
    {"cli", "pytest_plugin", "__main__"},
    {"app"},
    {"review"},
    {"notify"},
    {"triage", "suites", "report", "store"},
    {"engine"},
    {"judge", "golden"},
    {"ir", "cells", "corpus"},
    {"locking", "cache_folder"},
    {"model", "worker", "files", "scratch", "collecting", "wording"},
    {"kit"},
    {"errors", "__init__"},
)
"""From top to bottom; an arrow points down, or stays within one package."""
ACROSS = {
    ("pytest_plugin", "cli"),
    ("__main__", "cli"),
    ("report", "triage"),
    ("judge", "golden"),
    ("golden", "judge"),
}
LATE = {"worker/main.py", "worker/job.py", "worker/scout.py"}
"""Modules that run before jax may be imported, and import the rest of the worker later."""
MODULE_LINES, FUNCTION_LINES = 500, 80
COMMAND_LINES = 150
"""A module of the command line declares options and prints; what it calls is in `app`."""


@cache
def tree(file: Path) -> ast.Module:
    """Return a file's syntax tree."""
    return ast.parse(file.read_bytes(), filename=str(file))


def imports(node: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield every module that is imported anywhere below a node, with its line."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Import):
            yield from ((alias.name, inner.lineno) for alias in inner.names)
        elif isinstance(inner, ast.ImportFrom):
            assert inner.level == 0, "imports are absolute"
            for alias in inner.names:
                name = f"{inner.module}.{alias.name}"
                yield (name if name in MODULES else str(inner.module)), inner.lineno


def own(file: Path) -> set[str]:
    """Return the modules of ours that a file imports, also for type checking."""
    return {name for name, _ in imports(tree(file)) if name.partition(".")[0] == "conformance"}


def part(module: str) -> str:
    """Return the part of the house a module is in: `engine` for `conformance.engine.plan`."""
    return [*module.split("."), "__init__"][1]


def layer(name: str) -> int:
    """Return the layer of a part, counted from the top."""
    return next(number for number, names in enumerate(LAYERS) if name in names)


def place(file: Path) -> str:
    """Return a file's name within the package."""
    return str(file.relative_to(PACKAGE))


every_file = pytest.mark.parametrize("file", FILES, ids=place)


INSIDE_CELLS = [file for file in FILES if {"kit", "worker"} & set(file.parts)]


@pytest.mark.parametrize("file", INSIDE_CELLS, ids=place)
def test_kit_and_worker_import_nothing_else_of_the_project(file: Path) -> None:
    """They run inside cells, where the rest of the project is not installed."""
    allowed = ("conformance.kit", "conformance.worker")[: 1 + ("worker" in file.parts)]
    assert {name for name in own(file) if not name.startswith(allowed)} == set()


@pytest.mark.parametrize(
    "name",
    ["suites/plugin.py", "suites/inside/*.py", "engine/guard.py", "worker/tracebacks.py"],
)
def test_what_runs_beside_programs_stands_alone(name: str) -> None:
    """It is run by its path: nothing of ours can be imported there, but what is of its kind."""
    for file in PACKAGE.glob(name):
        kind = ("conformance.suites.inside", "conformance.worker.tracebacks")
        assert all(module.startswith(kind) for module in own(file))
        roots = {module.partition(".")[0] for module, _ in imports(tree(file))} - {"conformance"}
        there = {"pytest", "_pytest", "hypothesis", "psutil"}
        assert roots <= {*sys.stdlib_module_names, "__future__", *there}


@every_file
def test_jax_is_imported_in_kit_and_worker_alone(file: Path) -> None:
    """The orchestrator judges jax from outside."""
    found = {name for name, _ in imports(tree(file)) if name.partition(".")[0] in {"jax", "jaxlib"}}
    assert not found or file in INSIDE_CELLS


def test_the_application_layer_needs_no_command_line() -> None:
    """It can be called from a script or a notebook."""
    for file in FILES:
        if file.parent.name == "app":
            names = {name.partition(".")[0] for name, _ in imports(tree(file))}
            assert "click" not in names, place(file)


COMPOSED = {"LocalExecutor": "app/session.py", "Provider": "app/session.py"}
"""What is built in one place."""


@every_file
def test_one_place_composes(file: Path) -> None:
    """Executors and what opens workers are built by the session; result caches, nearly all."""
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert COMPOSED.get(node.func.id, place(file)) == place(file), node.func.id


@every_file
def test_arrows_point_down(file: Path) -> None:
    """A part knows those below it, never those above."""
    here = part(next(name for name, path in MODULES.items() if path == file))
    for name in own(file):
        there = part(name)
        down = layer(there) > layer(here) or there == here or (here, there) in ACROSS
        assert down, f"{place(file)} imports {name}"


def test_there_are_no_import_cycles() -> None:
    """Also not by imports for type checking alone."""
    graph = {name: own(file) & set(MODULES) - {name} for name, file in MODULES.items()}
    assert list(TopologicalSorter(graph).static_order())


ENTRIES = (
    "conformance.cli", "conformance.kit", "conformance.worker", "conformance.suites.inside",
    "conformance.suites.plugin", "conformance.engine.guard",
    "conformance.pytest_plugin", "conformance.__main__", "conformance.ir",
    "conformance.store.migrati",
)  # fmt: skip
"""Where programs begin: commands, what runs inside cells, the plugin of pytest, the library."""


def by_name(file: Path) -> set[str]:
    """Return the modules that a file names in a text, to import them when they are wanted."""
    texts = (node.value for node in ast.walk(tree(file)) if isinstance(node, ast.Constant))
    return {text for text in texts if text in MODULES}


def test_no_module_is_imported_by_tests_alone() -> None:
    """What only tests use stands among the tests."""
    left = [name for name in MODULES if name.startswith(ENTRIES)]
    reached: set[str] = set()
    while left:
        name = left.pop()
        if name not in reached:
            reached.add(name)
            left += (own(MODULES[name]) | by_name(MODULES[name])) & MODULES.keys()
    packages = {name.rpartition(".")[0] for name in MODULES}
    assert set(MODULES) - reached - packages == set()


@every_file
def test_no_first_party_import_hides_in_a_function(file: Path) -> None:
    """But for the worker's start, which must set things up before it imports."""
    hidden = {
        name
        for node in ast.walk(tree(file))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for name, _ in imports(node)
        if name.startswith("conformance")
    }
    assert not hidden or place(file) in LATE, hidden


@every_file
def test_modules_and_functions_are_short(file: Path) -> None:
    """At most 500 lines a module, 150 one of `cli`, and 80 a function; none is called utils."""
    assert file.stem not in {"utils", "util", "misc", "common", "helpers"}
    is_command = file.parent.name == "cli"
    limit = COMMAND_LINES if is_command else MODULE_LINES
    assert len(file.read_text().splitlines()) <= limit
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            lines = node.end_lineno - node.lineno + 1
            assert lines <= FUNCTION_LINES, f"{node.name} has {lines} lines"


def public(node: ast.Module | ast.ClassDef) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    """Yield what a module offers: its public functions, classes and their methods."""
    for inner in node.body:
        if isinstance(inner, ast.FunctionDef | ast.ClassDef) and not inner.name.startswith("_"):
            yield inner
            if isinstance(inner, ast.ClassDef):
                yield from public(inner)


@every_file
def test_what_is_public_has_a_docstring(file: Path) -> None:
    """Modules too."""
    assert ast.get_docstring(tree(file))
    for node in public(tree(file)):
        inner_class = isinstance(node, ast.ClassDef)
        assert ast.get_docstring(node), f"{'class' if inner_class else 'def'} {node.name}"


@pytest.mark.parametrize("file", CASES, ids=lambda file: str(file.relative_to(ROOT)))
def test_a_case_imports_only_what_a_cell_has(file: Path) -> None:
    """The kit is all of ours that is there; helpers are imported relatively."""
    absolute = [
        name
        for node in ast.walk(tree(file))
        if isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and node.level == 0)
        for name, _ in imports(node)
    ]
    ours = {name for name in absolute if name.startswith("conformance")}
    assert all(name.startswith("conformance.kit") for name in ours)


@pytest.mark.parametrize("file", FILES, ids=str)
def test_no_group_is_repeated_possessively(file: Path) -> None:
    """Python 3.11.2, that of Debian 12, takes in what such a group did not match: `(?>(?:x)*)`."""
    assert not re.findall(r"\)[*+?]\+", file.read_text())
