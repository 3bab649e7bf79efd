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

from .conftest import SETUPS

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
    {"cluster"},
    {"review"},
    {"notify"},
    {"triage", "suites", "report", "store", "fuzz"},
    {"search", "ecosystem"},
    {"engine"},
    {"judge", "golden"},
    {"laws", "bench", "scan"},
    {"ir", "cells", "corpus"},
    {"remote_cache"},
    {"locking", "cache_folder"},
    {"json_lines"},
    {
        "model",
        "worker",
        "files",
        "compression",
        "scratch",
        "garbage_collection",
        "wording",
        "pytest_scheduling",
    },
    {"kit"},
    {"errors", "__init__"},
)
"""From top to bottom; an arrow points down, or stays within one package."""
ACROSS = {
    ("pytest_plugin", "cli"),
    ("__main__", "cli"),
    ("report", "triage"),
    ("report", "fuzz"),
    ("judge", "golden"),
    ("golden", "judge"),
}
LATE = {"worker/main.py", "worker/job.py", "worker/scout.py"}
"""Modules that run before jax may be imported, and import the rest of the worker later."""
LAZY = {
    ("engine/record_judge.py", "conformance.engine.ir_analysis"),
    ("engine/workers/rank_transcripts.py", "conformance.engine.ir_analysis"),
    ("engine/workers/client.py", "conformance.engine.workers.rank_transcripts"),
    ("engine/cache/differences.py", "conformance.ir.text_diff"),
    ("cli/scan.py", "conformance.app.scan.fixes"),
    ("cli/words.py", "conformance.suites.catalogue.definition"),
}
"""Imports that most commands do not need: 44 modules that parse and normalise IRs, those of
cells with several processes, libcst, and suites."""
MODULE_LINES, FUNCTION_LINES = 400, 80
COMMAND_LINES = 150
"""A module of the command line declares options and prints; what it calls is in `app`."""


@cache
def tree(file: Path) -> ast.Module:
    """Return a file's syntax tree."""
    return ast.parse(file.read_bytes(), filename=str(file))


@cache
def nodes(file: Path) -> tuple[ast.AST, ...]:
    """Return all nodes of a file's syntax tree."""
    return tuple(ast.walk(tree(file)))


@cache
def own_imports(file: Path) -> tuple[tuple[str, int], ...]:
    """Return every module that a file imports, with its line."""
    kinds = (ast.Import, ast.ImportFrom)
    return tuple(pair for node in nodes(file) if isinstance(node, kinds) for pair in imports(node))


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


@cache
def own(file: Path) -> set[str]:
    """Return the modules of ours that a file imports, also for type checking."""
    return {name for name, _ in own_imports(file) if name.partition(".")[0] == "conformance"}


def part(module: str) -> str:
    """Return the part of the house a module is in: `engine` for `conformance.engine.plan`."""
    return [*module.split("."), "__init__"][1]


def layer(name: str) -> int:
    """Return the layer of a part, counted from the top."""
    return next(number for number, names in enumerate(LAYERS) if name in names)


def place(file: Path) -> str:
    """Return a file's name within the package."""
    return str(file.relative_to(PACKAGE))


INSIDE_CELLS = [
    file for file in FILES if {"kit", "worker"} & set(file.parts) or file.match("fuzz/inside/*.py")
]


def test_kit_and_worker_import_nothing_else_of_the_project() -> None:
    """They run inside cells, where the rest of the project is not installed."""
    wrong = []
    for file in INSIDE_CELLS:
        allowed = ("conformance.kit", "conformance.worker")[: 1 + ("worker" in file.parts)]
        wrong += [(place(file), name) for name in own(file) if not name.startswith(allowed)]
    assert wrong == []


@pytest.mark.parametrize(
    "name",
    ["suites/plugin.py", "suites/inside/*.py", "engine/workers/guard.py", "worker/tracebacks.py"],
)
def test_what_runs_beside_programs_stands_alone(name: str) -> None:
    """It is run by its path: nothing of ours can be imported there, but what is of its kind."""
    for file in PACKAGE.glob(name):
        kind = (
            "conformance.suites.inside", "conformance.worker.frames",
            "conformance.worker.job_process", "conformance.worker.processes",
            "conformance.worker.request_loop",
            "conformance.worker.supervisor",
            "conformance.worker.tracebacks",
        )  # fmt: skip
        assert all(module.startswith(kind) for module in own(file))
        there = {"pytest", "_pytest", "hypothesis", "psutil", "conformance"}
        assert roots(file) <= {*sys.stdlib_module_names, "__future__", *there}


def roots(file: Path) -> set[str]:
    """Return the top-level names of everything that a file imports."""
    return {name.partition(".")[0] for name, _ in own_imports(file)}


def test_jax_is_imported_in_kit_and_worker_alone() -> None:
    """The orchestrator judges jax from outside."""
    files = (file for file in FILES if file not in INSIDE_CELLS)
    assert [place(file) for file in files if roots(file) & {"jax", "jaxlib"}] == []


def test_the_application_layer_needs_no_command_line() -> None:
    """It can be called from a script or a notebook."""
    app = (file for file in FILES if file.is_relative_to(PACKAGE / "app"))
    assert [place(file) for file in app if "click" in roots(file)] == []


COMPOSED = {
    "LocalExecutor": {"app/session.py"},
    "ResultCache": {"app/session.py"},
    # A node of a cluster has no session: it provides the cells that a run asks for.
    "Provider": {"app/session.py", "cluster/node.py"},
}
"""Modules that may construct a type, by its name."""


def test_one_place_composes() -> None:
    """The session builds executors, result caches and providers of workers."""
    wrong = []
    for file in FILES:
        for node in nodes(file):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                name = node.func.id
                if place(file) not in COMPOSED.get(name, {place(file)}):
                    wrong.append((place(file), name))
    assert wrong == []


def test_arrows_point_down() -> None:
    """A part knows those below it, never those above."""
    wrong = []
    for module, file in MODULES.items():
        here = part(module)
        for name in own(file):
            there = part(name)
            down = layer(there) > layer(here) or there == here or (here, there) in ACROSS
            if not down:
                wrong.append(f"{place(file)} imports {name}")
    assert wrong == []


def test_there_are_no_import_cycles() -> None:
    """Also not by imports for type checking alone."""
    graph = {name: own(file) & set(MODULES) - {name} for name, file in MODULES.items()}
    assert list(TopologicalSorter(graph).static_order())


ENTRIES = (
    "conformance.cli", "conformance.kit", "conformance.worker", "conformance.suites.inside",
    "conformance.fuzz.inside", "conformance.laws.example_server",
    "conformance.suites.plugin", "conformance.engine.workers.guard",
    "conformance.pytest_plugin", "conformance.__main__", "conformance.ir",
    "conformance.store.migrati",
)  # fmt: skip
"""Where programs begin: commands, what runs inside cells, the plugin of pytest, the library."""


def by_name(file: Path) -> set[str]:
    """Return the modules that a file names in a text, to import them when they are wanted."""
    texts = (node.value for node in nodes(file) if isinstance(node, ast.Constant))
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


def test_no_first_party_import_hides_in_a_function() -> None:
    """Except where the worker starts, and where most commands would import it in vain."""
    hidden = {
        (place(file), name)
        for file in FILES
        if place(file) not in LATE
        for node in nodes(file)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for name, _ in imports(node)
        if name.startswith("conformance")
    }
    assert hidden == LAZY


def test_modules_and_functions_are_short() -> None:
    """At most 400 lines a module, 150 one of `cli`, and 80 a function; none is called utils."""
    wrong = []
    for file in FILES:
        if file.stem in {"utils", "util", "misc", "common", "helpers"}:
            wrong.append(f"{place(file)}: expected a name that says what it holds")
        limit = COMMAND_LINES if file.parent.name == "cli" else MODULE_LINES
        if (lines := len(file.read_text().splitlines())) > limit:
            wrong.append(f"{place(file)} has {lines} lines")
        for node in nodes(file):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or 0) - node.lineno + 1
                if lines > FUNCTION_LINES:
                    wrong.append(f"{place(file)}: {node.name} has {lines} lines")
    assert wrong == []


def public(node: ast.Module | ast.ClassDef) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    """Yield what a module offers: its public functions, classes and their methods."""
    for inner in node.body:
        if isinstance(inner, ast.FunctionDef | ast.ClassDef) and not inner.name.startswith("_"):
            yield inner
            if isinstance(inner, ast.ClassDef):
                yield from public(inner)


def test_shared_setups_are_of_tests_that_exist() -> None:
    """A beginning of no path would leave its tests to all workers, without a message."""
    tests = [str(file.relative_to(ROOT / "tests")) for file in (ROOT / "tests").rglob("test_*.py")]
    assert [begin for begin in SETUPS if not any(test.startswith(begin) for test in tests)] == []


def test_everything_public_has_a_docstring() -> None:
    """Modules, classes, functions and methods."""
    wrong = [place(file) for file in FILES if not ast.get_docstring(tree(file))]
    for file in FILES:
        undocumented = (node for node in public(tree(file)) if not ast.get_docstring(node))
        wrong += [f"{place(file)}: {node.name}" for node in undocumented]
    assert wrong == []


def test_no_two_public_classes_share_a_name() -> None:
    """A type has one meaning in the whole package."""
    homes: dict[str, list[str]] = {}
    for file in FILES:
        for node in tree(file).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(place(file))
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}


def test_a_case_imports_only_what_a_cell_has() -> None:
    """A cell has the kit and nothing else of the project; helpers are imported relatively."""
    wrong = []
    for file in CASES:
        for node in nodes(file):
            relative = isinstance(node, ast.ImportFrom) and node.level != 0
            if isinstance(node, ast.Import | ast.ImportFrom) and not relative:
                ours = {name for name, _ in imports(node) if name.startswith("conformance")}
                wrong += [(file, name) for name in ours if not name.startswith("conformance.kit")]
    assert wrong == []


def test_no_group_is_repeated_possessively() -> None:
    """Python 3.11.2, that of Debian 12, takes in what such a group did not match: `(?>(?:x)*)`."""
    files = [file for file in FILES if re.findall(r"\)[*+?]\+", file.read_text())]
    assert [place(file) for file in files] == []
