"""Counts the cases of each public module of JAX.

    python benchmarks/module_coverage.py [--write]

A case counts for a module if its function, or what the function uses of its file and of the
helpers of its family, names something of the module. A case that is one row of a table, with
`params=[*TABLE]`, counts for what this row names. Modules are those that the newest release has,
except private ones; deep modules of `jax.experimental` and `jax.extend` count for their parents.
`--write` replaces the section of docs/coverage.md that a test compares with the cases.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from audit_sources import MODULES, load_cases
from common import ROOT, checkout_context, prepare

from conformance.cells.provision import provision

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from conformance.model.case import Case

PAGE = ROOT / "docs" / "coverage.md"
HEADING = f"## {MODULES}"
SECTION = re.compile(rf"{HEADING}\n.*?(?=\n## |\Z)", re.DOTALL)
ROW = re.compile(r"^\| `(jax[\w.]*)` \| ([\d,]+) \|$", re.MULTILINE)
TEXT = """\
The number of cases whose code names something of each public module of JAX. A case that is one row
of a table counts for what its row names. Deep modules of `jax.experimental` and `jax.extend` count
for their parents. The table is written by `python benchmarks/module_coverage.py --write`.
"""
DEPTH = 3
"""Components of the name of a module of `jax.experimental` or `jax.extend` that has a row."""
KERNEL_LANGUAGES = ("mosaic_gpu", "tpu", "tpu_sc", "triton")
"""Modules of `jax.experimental.pallas` that have rows of their own."""
LISTING = """\
import pkgutil, warnings
warnings.simplefilter("ignore")
import jax
print("jax", *(m.name for m in pkgutil.walk_packages(jax.__path__, "jax.", onerror=lambda _: None)))
"""
ENV = {
    "compat.shard_map": "jax.experimental.shard_map.shard_map",
    "compat.pvary": "jax.lax.pvary",
    "compat.make_mesh": "jax.make_mesh",
    "compat.compute_on": "jax.experimental.compute_on.compute_on",
    "mesh": "jax.sharding.Mesh",
    "put": "jax.device_put",
}
"""Names of JAX behind attributes of the argument `env` of a case."""


class Unit(NamedTuple):
    """A top-level statement of a module.

    Attributes:
        names: Dotted names of JAX in it.
        used: Names of the module that it uses.
        rows: The same for each value of a dictionary with literal keys, by key.
    """

    names: frozenset[str]
    used: frozenset[str]
    rows: Mapping[str, Unit]


class Module(NamedTuple):
    """A case file or a helper.

    Attributes:
        units: Statements by the names that they bind.
        helpers: Names imported from helpers of the family, with file and name there.
    """

    units: Mapping[str, list[Unit]]
    helpers: Mapping[str, tuple[Path, str]]


def main() -> None:
    """Print the table, and write it if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    section = render_section(count_cases(list_modules()))
    print(section)
    if options.write:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(SECTION.sub(lambda _: section, page), encoding="utf-8")


def list_modules() -> list[str]:
    """Return the public modules of the newest release that have a row."""
    (planned,) = prepare("latest").cells
    lock = prepare("latest").locks[planned.cell.id]
    python = provision(planned.cell, lock=lock, cache=checkout_context().cache).python
    listed = subprocess.run([python, "-c", LISTING], check=True, capture_output=True, text=True)
    public = [name for name in listed.stdout.split() if not re.search(r"\._", name)]
    return sorted({fold_module(name) for name in public})


def fold_module(name: str) -> str:
    """Return the module whose row counts a module."""
    parts = name.split(".")
    if parts[1:3] == ["experimental", "pallas"] and parts[3:] and parts[3] in KERNEL_LANGUAGES:
        return ".".join(parts[:4])
    deep = parts[1:2] in (["experimental"], ["extend"])
    return ".".join(parts[:DEPTH]) if deep else name


def count_cases(modules: Iterable[str]) -> dict[str, int]:
    """Return the number of cases of each module."""
    counts = dict.fromkeys(modules, 0)
    for case in load_cases().values():
        for module in {find_module(name, counts) for name in find_names(case)} & counts.keys():
            counts[module] += 1
    return counts


def find_module(name: str, modules: Mapping[str, int]) -> str:
    """Return the module that has a dotted name: the longest that begins it."""
    folded = fold_module(name)
    parts = (name if folded == name else folded).split(".")
    return next(
        prefix
        for end in range(len(parts), 0, -1)
        if (prefix := ".".join(parts[:end])) in modules or end == 1
    )


def find_names(case: Case) -> set[str]:
    """Return the dotted names of JAX in the code of a case."""
    names: set[str] = set()
    pending = [(case.file, case.name)]
    seen = set(pending)
    key = case.id.partition("[")[2].rstrip("]")
    while pending:
        file, name = pending.pop()
        module = read_module(file)
        if name in module.helpers:
            pending += {module.helpers[name]} - seen
            seen.add(module.helpers[name])
            continue
        for unit in module.units.get(name, ()):
            part = unit.rows.get(key, unit)
            names |= part.names
            found = {(file, used) for used in part.used} - seen
            seen |= found
            pending += found
    return names


@cache
def read_module(file: Path) -> Module:
    """Return the statements of a case file by the names that they bind."""
    body = ast.parse(file.read_text(encoding="utf-8")).body
    aliases = {name: target for node in body for name, target in find_imports(node)}
    helpers: dict[str, tuple[Path, str]] = {}
    for node in body:
        if isinstance(node, ast.ImportFrom) and node.level and node.module:
            helper = file.parent / f"{node.module}.py"
            helpers |= {a.asname or a.name: (helper, a.name) for a in node.names}
    aliases = {name: target for name, target in aliases.items() if is_of_jax(target)}
    units: dict[str, list[Unit]] = defaultdict(list)
    for node in body:
        for name in find_bound_names(node):
            units[name].append(read_unit(node, aliases))
    return Module(units, helpers)


def find_imports(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the names that an absolute import binds, with what they stand for."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            root = alias.name.partition(".")[0]
            yield (alias.asname, alias.name) if alias.asname else (root, root)
    elif isinstance(node, ast.ImportFrom) and node.level == 0:
        for alias in node.names:
            yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def is_of_jax(name: str) -> bool:
    """Return whether a dotted name is of JAX."""
    return name == "jax" or name.startswith("jax.")


def find_bound_names(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a top-level statement binds."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, (ast.Assign, ast.AnnAssign)):
        for child in ast.walk(node):
            if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
                yield child.id


def read_unit(node: ast.AST, aliases: Mapping[str, str]) -> Unit:
    """Return the names in a statement or an expression."""
    names: set[str] = set()
    used: set[str] = set()
    for child in ast.walk(node):
        # Cases import within functions what a release may lack.
        names |= {target for _, target in find_imports(child) if is_of_jax(target)}
        dotted = get_dotted(child)
        root, _, rest = dotted.partition(".")
        if root in aliases:
            names.add(f"{aliases[root]}.{rest}".rstrip("."))
        elif root == "env":
            names |= {target for name, target in ENV.items() if rest == name}
        elif dotted:
            used.add(root)
    return Unit(frozenset(names), frozenset(used), dict(read_rows(node, aliases)))


def read_rows(node: ast.AST, aliases: Mapping[str, str]) -> Iterator[tuple[str, Unit]]:
    """Yield the keys of a table, an assigned dictionary, with the names in their values."""
    value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
    if isinstance(value, ast.Dict):
        for key, element in zip(value.keys, value.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield key.value, read_unit(element, aliases)


def get_dotted(node: ast.AST) -> str:
    """Return the text of a name or an attribute of a name, empty for another node."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (inner := get_dotted(node.value)):
        return f"{inner}.{node.attr}"
    return ""


def render_section(counts: Mapping[str, int]) -> str:
    """Return the section of the page."""
    rows = "".join(f"| `{module}` | {count:,} |\n" for module, count in sorted(counts.items()))
    return f"{HEADING}\n\n{TEXT}\n| module | cases |\n| --- | --- |\n{rows}"


if __name__ == "__main__":
    main()
