"""Imports: read from a statement, divided between a case and its file, added to a file. Pure.

A case file is imported once for all its cases. An import that fails on some release is part of the
behavior of one case, and must not break the others: it goes into the function of that case.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Final

from conformance.corpus.python_source import STANDARD_LIBRARY, sort_key_of_import
from conformance.triage.new.script_source import find_imports
from conformance.triage.repro.layout import WIDTH

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

_MODULES: Final = frozenset({"jax", "jax.numpy", "jax.lax", "jax.random", "jax.nn", "numpy"})
"""Modules that every release has."""
_NAMES: Final = {
    "jax": frozenset({
        "numpy", "lax", "random", "nn", "tree_util", "jit", "grad", "vmap", "value_and_grad", "jvp",
        "vjp", "jacfwd", "jacrev", "hessian", "linearize", "checkpoint", "eval_shape", "make_jaxpr",
        "device_put", "Array", "ShapeDtypeStruct", "custom_vjp", "custom_jvp", "debug",
    }),
    "jax.sharding": frozenset({"Mesh", "NamedSharding", "PartitionSpec"}),
}  # fmt: skip
"""Names that every release has, by module."""
_SETUP_MODULES: Final = frozenset({"os", "sys", "__future__"})
"""Modules that scripts import for their settings, which become keywords of the case."""
_IMPORT: Final = re.compile(r"(?:from (\S+) )?import (.*)")


def split_import(node: ast.stmt) -> Iterator[tuple[str, str]]:
    """Yield the imports of a statement, one name each, with the name that each binds.

    Args:
        node: Any statement; one that is no import has none.
    """
    match node:
        case ast.Import(names=aliases):
            for alias in aliases:
                yield f"import {_render_alias(alias)}", alias.asname or alias.name.partition(".")[0]
        case ast.ImportFrom(module=module, names=aliases, level=level):
            for alias in aliases:
                line = f"from {'.' * level}{module or ''} import {_render_alias(alias)}"
                yield line, alias.asname or alias.name
        case _:
            pass


def _render_alias(alias: ast.alias) -> str:
    return f"{alias.name} as {alias.asname}" if alias.asname else alias.name


def _parse_line(line: str) -> tuple[str, str]:
    """Return the module that an import of one name is from, empty for `import`, and the name."""
    module, name = _IMPORT.findall(line)[0]
    return module, name


def divide_imports(
    imports: Iterable[ast.stmt], body: str, *, bound: Collection[str], uses_compat: bool
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the imports that the body of a case needs.

    Args:
        imports: The imports of the script.
        body: Statements of the case.
        bound: Names that the script binds, except by imports.
        uses_compat: Whether `env.compat` replaces names that the script imports.

    Returns:
        Lines for the top of the file, by the name that they bind; and lines for the function.
    """
    nodes = ast.walk(ast.parse(body))
    used = {node.id for node in nodes if isinstance(node, ast.Name)}
    outer: dict[str, str] = {}
    # An ordered set: imports keep the order of the script.
    inner: dict[str, None] = {}
    for line, name in (pair for node in imports for pair in split_import(node)):
        module, imported = _parse_line(line)
        if module == "__future__":
            continue
        if name not in used:
            # An unused import may be the reason why the script fails on a release.
            if not (
                _is_always_available(module, imported) or name in _SETUP_MODULES or uses_compat
            ):
                inner[f"{line}  # noqa: F401"] = None
        elif _is_always_available(module, imported) and name not in bound:
            outer[name] = line
        else:
            inner[line] = None
    return outer, tuple(inner)


def _is_always_available(module: str, name: str) -> bool:
    """Return whether every release has an imported name."""
    name = name.partition(" as ")[0]
    # The standard library does not depend on the release of jax.
    known = name in _NAMES.get(module, ()) if module else name in _MODULES
    return known or (module or name).partition(".")[0] in STANDARD_LIBRARY


def add_imports(file: str, lines: Iterable[str]) -> str:
    """Return a file with more imports, each where an import sorter would put it.

    Args:
        file: A file; everything else in it stays unchanged.
        lines: The imports, one name each; those that the file has are left out.
    """
    present = {line for node in ast.parse(file).body for line, _ in split_import(node)}
    # Each line is added to a newly parsed file, since an insertion moves the lines below. Ruff's
    # sorter is no alternative: it would also change imports that the case does not touch.
    for line in sorted({*lines} - present):
        file = _add_import(file, line)
    return file


def _add_import(file: str, line: str) -> str:
    module, name = _parse_line(line)
    lines = file.splitlines(keepends=True)
    nodes = find_imports(ast.parse(file))
    for node in nodes:
        parsed = [(module, name), *(_parse_line(other) for other, _ in split_import(node))]
        # Ruff puts each name with `as` into a separate statement.
        if module and all(of == module and " as " not in other for of, other in parsed):
            names = sorted({other for _, other in parsed}, key=sort_key_of_import)
            lines[node.lineno - 1 : node.end_lineno] = [_render_from_import(module, names)]
            return "".join(lines)
    key, new = _sort_key(line), f"{line}\n"
    keys = [(node, _sort_key(ast.unparse(node))) for node in nodes]
    section = [(node, other) for node, other in keys if other[0] == key[0]]
    earlier_sections = [node for node, other in keys if other[0] < key[0]]
    if section:
        after = next((node for node, other in section if other > key), None)
        lines.insert(after.lineno - 1 if after else section[-1][0].end_lineno or 0, new)
    elif earlier_sections:
        lines.insert(earlier_sections[-1].end_lineno or 0, f"\n{new}")
    else:
        lines.insert(nodes[0].lineno - 1 if nodes else len(lines), f"{new}\n")
    return "".join(lines)


def _render_from_import(module: str, names: list[str]) -> str:
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= WIDTH:
        return f"{line}\n"
    return f"from {module} import (\n" + "".join(f"    {name},\n" for name in names) + ")\n"


def _sort_key(line: str) -> tuple[int, bool, str]:
    """Return where an import is sorted: by section, plain ones first, by module."""
    module, name = _parse_line(line)
    root = (module or name).partition(" ")[0].partition(".")[0]
    # The sections of Ruff's sorter: `__future__`, standard library, third party, first party,
    # relative.
    section = (
        0 if module == "__future__" else 4 if not root else 1 if root in STANDARD_LIBRARY
        else 3 if root == "conformance" else 2
    )  # fmt: skip
    return section, bool(module), f"{module} {name}" if module else name
