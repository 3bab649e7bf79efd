"""Module constants and defaults of a case file, resolved without importing it.

A decorator can name a constant that it shares with others, or that is too long for it:

```python
defaults(devices=4, platforms=("cpu",))

NO_RULE_FOR_WHILE = deviation("jax<0.6", error="NotImplementedError", match="No replication rule")

@program(source="jax-ml/jax#28110", deviations=[NO_RULE_FOR_WHILE])
def adaptive_time_step(env): ...
```
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from conformance.corpus.python_source import get_callee_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def find_constants(tree: ast.Module) -> dict[str, ast.expr]:
    """Return the values of the names that a module assigns exactly once, at its top level.

    Args:
        tree: The syntax tree of a case file.
    """
    constants: dict[str, ast.expr] = {}
    # A name that is assigned twice has the value of the last assignment at import, but not before.
    repeated = set()
    for name, value in _find_assignments(tree):
        if name in constants:
            repeated.add(name)
        constants[name] = value
    return {name: value for name, value in constants.items() if name not in repeated}


def _find_assignments(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            target, value = node.target, node.value
        else:
            continue
        if isinstance(target, ast.Name):
            yield target.id, value


def find_defaults(tree: ast.Module) -> Iterator[ast.Call]:
    """Yield the calls of `defaults` at the top level of a module.

    Args:
        tree: The syntax tree of a case file.
    """
    for node in tree.body:
        call = node.value if isinstance(node, ast.Expr) else None
        if isinstance(call, ast.Call) and get_callee_name(call) == "defaults":
            yield call


def resolve_constants(node: Any, constants: Mapping[str, ast.expr]) -> Any:
    """Replace names of constants in an expression by their values.

    The expression itself is not changed: several decorators may share a constant.

    Args:
        node: An expression: literals, names and calls whose arguments are such expressions.
        constants: Values by name. A name that occurs in its own value is left.

    Returns:
        The expression with the values; a `*NAME` in a list is replaced by the elements, or by the
        keys of a dictionary.
    """
    match node:
        case ast.Name(id=name) if name in constants:
            # Without the name itself, so that a constant in its own value ends the recursion.
            rest = {other: value for other, value in constants.items() if other != name}
            return resolve_constants(constants[name], rest)
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            changed = [new for old in elements for new in _resolve_element(old, constants)]
            # Locations stay those of the decorator, in which errors are reported.
            return ast.copy_location(type(node)(elts=changed, ctx=ast.Load()), node)
        case ast.Dict(keys=keys, values=values):
            changed = [resolve_constants(value, constants) for value in values]
            return ast.copy_location(ast.Dict(keys=keys, values=changed), node)
        case ast.Call(func=callee, args=args, keywords=keywords):
            call = ast.Call(
                func=callee,
                args=[resolve_constants(arg, constants) for arg in args],
                keywords=[
                    ast.copy_location(
                        ast.keyword(keyword.arg, resolve_constants(keyword.value, constants)),
                        keyword,
                    )
                    for keyword in keywords
                ],
            )
            return ast.copy_location(call, node)
        case _:
            return node


def _resolve_element(node: ast.expr, constants: Mapping[str, ast.expr]) -> list[ast.expr]:
    if isinstance(node, ast.Starred):
        # The keys alone: the values may be functions, which no literal can be.
        if isinstance(node.value, ast.Name) and isinstance(
            table := constants.get(node.value.id), ast.Dict
        ):
            return [key for key in table.keys if key is not None]
        elements = resolve_constants(node.value, constants)
        return elements.elts if isinstance(elements, (ast.List, ast.Tuple)) else [node]
    return [resolve_constants(node, constants)]
