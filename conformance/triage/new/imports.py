"""Imports: read from a statement, divided between a case and its file, added to a file. Pure.

A case file is imported once for all its cases. An import that fails on some release is part of the
behaviour of one case, and must not break the others: it is in the function of that case.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Final

from conformance.corpus.python_source import STANDARD_LIBRARY, sort_key_of_import
from conformance.triage.new.source import find_imports

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from conformance.triage.new.script import Script

WIDTH: Final = 100
_MODULES: Final = frozenset({"jax", "jax.numpy", "jax.lax", "jax.random", "jax.nn", "numpy"})
"""What may stand in `import MODULE` at the top of a file."""
_NAMES: Final = {
    "jax": frozenset({
        "numpy", "lax", "random", "nn", "tree_util", "jit", "grad", "vmap", "value_and_grad", "jvp",
        "vjp", "jacfwd", "jacrev", "hessian", "linearize", "checkpoint", "eval_shape", "make_jaxpr",
        "device_put", "Array", "ShapeDtypeStruct", "custom_vjp", "custom_jvp", "debug",
    }),
    "jax.sharding": frozenset({"Mesh", "NamedSharding", "PartitionSpec"}),
}  # fmt: skip
"""Names that every release has."""
_QUIET: Final = frozenset({"os", "sys", "__future__"})
"""Modules that are imported only to set things up."""
_IMPORT: Final = re.compile(r"(?:from (\S+) )?import (.*)")


def import_lines(node: ast.stmt) -> Iterator[tuple[str, str]]:
    """Yield the imports of a statement, one name each, with the name that each binds.

    Args:
        node: Any statement; one that imports nothing has none.
    """
    match node:
        case ast.Import(names=aliases):
            for alias in aliases:
                yield f"import {_spelled(alias)}", alias.asname or alias.name.partition(".")[0]
        case ast.ImportFrom(module=module, names=aliases, level=level):
            for alias in aliases:
                line = f"from {'.' * level}{module or ''} import {_spelled(alias)}"
                yield line, alias.asname or alias.name
        case _:
            pass


def _spelled(alias: ast.alias) -> str:
    return f"{alias.name} as {alias.asname}" if alias.asname else alias.name


def _parts(line: str) -> tuple[str | None, str]:
    """Return the module that an import of one name is from, None for plain ones, and the rest."""
    match = _IMPORT.match(line)
    assert match is not None  # noqa: S101 - lines are ours
    return match[1], match[2]


def divide_imports(
    script: Script, body: str, *, bridged: bool
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the imports that the body of a case needs.

    Args:
        script: The script.
        body: Statements of the case.
        bridged: Whether names of it come from elsewhere than the script imports them.

    Returns:
        Lines for the top of the file, by the name they bind; and lines for the function.
    """
    nodes = ast.walk(ast.parse(body))
    loaded = {node.id for node in nodes if isinstance(node, ast.Name)}
    outer: dict[str, str] = {}
    inner: dict[str, None] = {}
    for line, bound in (one for node in script.source.tree.body for one in import_lines(node)):
        known = _is_known(*_parts(line))
        if line.startswith("from __future__ "):
            continue
        if bound not in loaded:
            if not (known or bound in _QUIET or bridged):
                inner[f"{line}  # noqa: F401"] = None
        elif known and bound not in script.bound:
            outer[bound] = line
        else:
            inner[line] = None
    return outer, tuple(inner)


def _is_known(module: str | None, name: str) -> bool:
    """Say whether every release has what is imported."""
    name = name.partition(" as ")[0]
    known = name in _MODULES if module is None else name in _NAMES.get(module, ())
    return known or (module or name).partition(".")[0] in STANDARD_LIBRARY


def add_imports(file: str, lines: Iterable[str]) -> str:
    """Return a file with more imports, each where a sorter of imports would put it.

    Args:
        file: A file; everything else in it stays unchanged.
        lines: The imports, one name each; those that the file has are left out.
    """
    have = {line for node in ast.parse(file).body for line, _ in import_lines(node)}
    for line in sorted({*lines} - have):
        file = _with_import(file, line)
    return file


def _with_import(file: str, line: str) -> str:
    module, name = _parts(line)
    lines = file.splitlines(keepends=True)
    nodes = find_imports(ast.parse(file))
    for node in nodes:
        found = [(module, name), *(_parts(one) for one, _ in import_lines(node))]
        if module and all(of == module and " as " not in one for of, one in found):
            names = sorted({one for _, one in found}, key=sort_key_of_import)
            lines[node.lineno - 1 : node.end_lineno] = [_from(module, names)]
            return "".join(lines)
    key, new = _key(line), f"{line}\n"
    keys = [(node, _key(ast.unparse(node))) for node in nodes]
    section = [(node, other) for node, other in keys if other[0] == key[0]]
    lower = [node for node, other in keys if other[0] < key[0]]
    if section:
        after = next((node for node, other in section if other > key), None)
        lines.insert(after.lineno - 1 if after else section[-1][0].end_lineno or 0, new)
    elif lower:
        lines.insert(lower[-1].end_lineno or 0, f"\n{new}")
    else:
        lines.insert(nodes[0].lineno - 1 if nodes else len(lines), f"{new}\n")
    return "".join(lines)


def _from(module: str, names: list[str]) -> str:
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= WIDTH:
        return f"{line}\n"
    return f"from {module} import (\n" + "".join(f"    {one},\n" for one in names) + ")\n"


def _key(line: str) -> tuple[int, int, str]:
    """Return where an import is sorted: by section, plain ones first, by module."""
    module, name = _parts(line)
    root = (module or name).partition(" ")[0].partition(".")[0]
    section = (
        0 if module == "__future__" else 4 if not root else 1 if root in STANDARD_LIBRARY
        else 3 if root == "conformance" else 2
    )  # fmt: skip
    return section, int(module is not None), f"{module} {name}" if module else name
