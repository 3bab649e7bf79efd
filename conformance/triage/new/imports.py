"""Imports of a case: at the top of its file what every release has, the rest within. Pure.

The file is imported once for all its cases: an import that fails on some release is part of what
one case shows, and must not take the others with it.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from conformance.corpus.python_source import STANDARD_LIBRARY

if TYPE_CHECKING:
    from conformance.triage.new.script import Script

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


def divided(script: Script, body: str, *, bridged: bool) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the imports that the body of a case needs.

    Args:
        script: The script.
        body: Statements of the case.
        bridged: Whether names of it come from elsewhere than the script imports them.

    Returns:
        Lines for the top of the file, by the name they bind; and lines for the function.
    """
    loaded = {
        node.id for node in ast.walk(ast.parse(f"def case(env):\n {_shifted(body)}"))
        if isinstance(node, ast.Name)
    }  # fmt: skip
    outer: dict[str, str] = {}
    inner: list[str] = []
    for node in script.tree.body:
        for line, bound, known in _lines(node):
            if bound in loaded:
                if known and bound not in script.bound:
                    outer[bound] = line
                else:
                    inner.append(line)
            elif not (known or bound in _QUIET or bridged):
                inner.append(f"{line}  # noqa: F401")
    return outer, tuple(dict.fromkeys(inner))


def _shifted(body: str) -> str:
    """Return statements one column further in; texts that span lines do not matter here."""
    return body.replace("\n", "\n ")


def _lines(node: ast.stmt) -> list[tuple[str, str, bool]]:
    """Return the imports of a statement: line, name bound, and whether every release has it."""
    if isinstance(node, ast.Import):
        return [
            (
                f"import {alias.name}" + (f" as {alias.asname}" if alias.asname else ""),
                alias.asname or alias.name.partition(".")[0],
                alias.name in _MODULES or _is_standard(alias.name),
            )
            for alias in node.names
        ]
    if not isinstance(node, ast.ImportFrom) or node.module in {None, "__future__"}:
        return []
    assert node.module is not None  # noqa: S101 - relative imports are refused
    return [
        (
            f"from {node.module} import {alias.name}"
            + (f" as {alias.asname}" if alias.asname else ""),
            alias.asname or alias.name,
            alias.name in _NAMES.get(node.module, ()) or _is_standard(node.module),
        )
        for alias in node.names
    ]


def _is_standard(module: str) -> bool:
    return module.partition(".")[0] in STANDARD_LIBRARY
