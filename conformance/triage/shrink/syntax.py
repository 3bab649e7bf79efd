"""Syntax trees of Python: parents of nodes, edited copies, names read and bound. Pure."""

from __future__ import annotations

import ast
import builtins
import symtable
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Replacements = Mapping[ast.AST, Sequence[ast.AST]]
    """New nodes by replaced node, empty to drop it. The node itself may be among them."""

N = TypeVar("N", bound=ast.AST)
SCOPES: Final = (ast.FunctionDef, ast.Lambda, ast.ClassDef)
_PREDEFINED: Final = frozenset({*dir(builtins), "__name__", "__file__", "__doc__"})


class SyntaxTree:
    """Code whose nodes know their parents.

    Args:
        text: Python.
        keep: Name of the function to keep: the rest of the code serves it.

    Attributes:
        text: The code.
        keep: Name of the function to keep: the rest of the code serves it.
        root: The module; it is never changed.
        nodes: Its nodes, in the order of the code.
    """

    def __init__(self, text: str, keep: str) -> None:
        self.text, self.keep, self.root = text, keep, ast.parse(text)
        self.nodes: list[ast.AST] = []
        self._parents: dict[ast.AST, tuple[ast.AST, str]] = {}
        self._index(self.root)

    def _index(self, node: ast.AST) -> None:
        self.nodes.append(node)
        for field, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                # Contexts are singletons, which have no one parent.
                if isinstance(child, ast.AST) and not isinstance(child, ast.expr_context):
                    self._parents[child] = (node, field)
                    self._index(child)

    def get_parent(self, node: ast.AST) -> ast.AST:
        """Return the parent of a node; the module is its own."""
        return self._parents[node][0] if node in self._parents else self.root

    def get_field(self, node: ast.AST) -> str:
        """Return the field of its parent that a node is in, empty for the module."""
        return self._parents[node][1] if node in self._parents else ""

    def walk_ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the nodes around a node, from the inside out."""
        while node in self._parents:
            node = self._parents[node][0]
            yield node

    def find_statement(self, node: ast.AST) -> ast.AST:
        """Return the innermost statement that contains a node, or is it."""
        around = (
            outer for outer in (node, *self.walk_ancestors(node)) if isinstance(outer, ast.stmt)
        )
        return next(around, self.root)

    def find_loads(self, name: str) -> list[ast.Name]:
        """Return the nodes that read a name."""
        names = (node for node in self.nodes if isinstance(node, ast.Name) and node.id == name)
        return [node for node in names if isinstance(node.ctx, ast.Load)]


def replace_nodes(node: N, replacements: Replacements) -> N:
    """Return a copy of a node with other nodes in place of some below it.

    Args:
        node: A node.
        replacements: The new nodes; a node without any is dropped from its list.
    """
    copy: N = _copy_node(node, replacements)[0]
    return copy


def _copy_node(node: Any, replacements: Replacements, *, is_new: bool = False) -> list[Any]:
    if not isinstance(node, ast.AST):
        return [node]
    if node in replacements and not is_new:
        # Replacements may contain nodes that are replaced, too, and the replaced node itself.
        return [
            copy
            for new in replacements[node]
            for copy in _copy_node(new, replacements, is_new=new is node)
        ]
    fields: dict[str, Any] = {}
    for name, value in ast.iter_fields(node):
        if isinstance(value, list):
            fields[name] = [copy for item in value for copy in _copy_node(item, replacements)]
        else:
            fields[name] = next(iter(_copy_node(value, replacements)), None)
    # Without positions: those of an edited tree would be wrong, and `ast.unparse` reads none.
    return [type(node)(**fields)]


def count_nodes(node: ast.AST) -> int:
    """Return the number of nodes of a tree, except contexts, operators and argument lists."""
    silent = (ast.expr_context, ast.operator, ast.arguments)
    return sum(not isinstance(inner, silent) for inner in ast.walk(node))


def parse_expression(text: str) -> ast.expr:
    """Return the tree of an expression."""
    return ast.parse(text, mode="eval").body


def count_loads(tree: ast.AST) -> Counter[str]:
    """Return how often each name is read."""
    return Counter(
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    )


def count_stores(tree: ast.AST) -> Counter[str]:
    """Return how often each name is bound, by any kind of statement."""
    return Counter(name for node in ast.walk(tree) for name in _bindings(node))


def count_own_stores(scope: ast.AST) -> Counter[str]:
    """Return how often a scope binds each name, without the functions in it."""
    return Counter(name for node in walk_scope(scope) for name in _bindings(node))


def walk_scope(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below a node, except those within functions and classes."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, SCOPES):
            yield from walk_scope(child)


def list_parameters(function: ast.AST) -> list[ast.arg]:
    """Return the positional parameters of a function, none for another node."""
    if not isinstance(function, ast.FunctionDef | ast.Lambda):
        return []
    # Keyword-only parameters have no position in calls.
    return [*function.args.posonlyargs, *function.args.args]


def find_function(tree: ast.Module, name: str) -> ast.FunctionDef:
    """Return a function of a module by its name."""
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef))
    return next(node for node in functions if node.name == name)


def find_undefined(text: str) -> set[str]:
    """Return the names that a module uses and binds nowhere.

    Args:
        text: Python.
    """
    # `symtable` resolves scopes as the compiler does.
    tables = [top := symtable.symtable(text, "text", "exec")]
    for table in tables:  # grows while it is read: tables are nested
        tables += table.get_children()
    bound = {
        symbol.get_name()
        for symbol in top.get_symbols()
        if symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()
    }
    used = {
        symbol.get_name()
        for table in tables
        for symbol in table.get_symbols()
        if symbol.is_referenced() and (table is top or symbol.is_global())
    }
    return used - bound - _PREDEFINED


def _bindings(node: ast.AST) -> list[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            return [name]
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return [alias.asname or alias.name.partition(".")[0] for alias in names]
        case ast.Global(names=shared) | ast.Nonlocal(names=shared):
            return shared * 2  # counts twice: such a name is bound in another scope, too
        case _:
            return []
