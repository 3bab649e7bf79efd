"""A script to be rewritten: `ast` reads it, libcst writes it, and all else stays as written.

Patterns over `ast` are short, and `ast` evaluates literals. libcst keeps comments and layout, and
indents statements that move into another block. Both trees have the same statements in the same
order.
"""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING, Any

import libcst as cst
from libcst.helpers import get_full_name_for_node

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Rewrite = Callable[[cst.CSTNode, cst.CSTNode], Any]

Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement
"""Nodes of libcst that have lines of their own."""
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
"""Nodes whose bodies do not run where they are written."""


class ScriptSource:
    """A script in which each statement has lines of its own.

    Args:
        module: The script.

    Attributes:
        text: The script as text.
        tree: The script for reading.
        names: Dotted path of each imported name.
    """

    def __init__(self, module: cst.Module) -> None:
        self._module = module
        self.text = module.code
        self.tree = ast.parse(self.text)
        self.names = collect_imported_names(self.tree)

    @classmethod
    def parse(cls, text: str) -> ScriptSource:
        """Return the source of a script.

        Args:
            text: Python.
        """
        return cls(_parse_module(text))

    @cached_property
    def _cst_statements(self) -> Mapping[ast.stmt, Statement]:
        """The statements for writing, by those for reading."""
        nodes = (node for node in _walk_cst(self._module) if isinstance(node, Statement))
        return dict(zip(_walk_statements(self.tree), nodes, strict=True))

    def render(self, nodes: Sequence[ast.stmt]) -> str:
        """Return statements as written, with the indentation of a module.

        Args:
            nodes: Consecutive statements.
        """
        return cst.Module([self._cst_statements[node] for node in nodes]).code

    def segment(self, node: ast.expr) -> str:
        """Return the source text of an expression."""
        return ast.get_source_segment(self.text, node) or ast.unparse(node)

    def replace(self, changes: Mapping[ast.stmt, str]) -> ScriptSource:
        """Return the source with some statements replaced.

        Args:
            changes: Text of the new statements by the statement that they replace. The comments
                above and after it stay. An empty text removes a statement outside of blocks.
        """
        texts: dict[cst.CSTNode, str] = {
            self._cst_statements[node]: text for node, text in changes.items()
        }
        removed: set[cst.CSTNode] = set()

        def replace_statement(original: cst.CSTNode, node: cst.CSTNode) -> Any:
            if isinstance(node, cst.Module):
                # `RemovalSentinel` would remove the comments above a statement with it.
                return _remove_statements(node, removed)
            if original not in texts or not isinstance(node, Statement):
                return node
            if not (new := parse_statements(texts[original])):
                removed.add(node)
                return node
            above = [*node.leading_lines, *new[0].leading_lines]
            new[0] = new[0].with_changes(leading_lines=above)
            trailing = getattr(node, "trailing_whitespace", None)
            if trailing and trailing.comment and isinstance(new[-1], cst.SimpleStatementLine):
                new[-1] = new[-1].with_changes(trailing_whitespace=trailing)
            return cst.FlattenSentinel(new)

        return self.transform(replace_statement) if changes else self

    def insert(self, before: ast.stmt, text: str) -> ScriptSource:
        """Return the source with statements before another, below the comments above it."""
        statement = self._cst_statements[before].with_changes(leading_lines=[])
        return self.replace({before: f"{text}\n{cst.Module([statement]).code}"})

    def transform(self, rewrite: Rewrite) -> ScriptSource:
        """Return the source with some nodes replaced.

        Args:
            rewrite: Returns the replacement of a node, given the original node, and the node with
                its children rewritten.
        """
        return ScriptSource(_rewrite_module(self._module, rewrite))


class _Transformer(cst.CSTTransformer):
    def __init__(self, rewrite: Rewrite) -> None:
        super().__init__()
        self._rewrite = rewrite

    def on_leave(self, original_node: cst.CSTNodeT, updated_node: cst.CSTNodeT) -> Any:
        return self._rewrite(original_node, updated_node)


def _rewrite_module(module: cst.Module, rewrite: Rewrite) -> cst.Module:
    return cst.ensure_type(module.visit(_Transformer(rewrite)), cst.Module)


def _walk_cst(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    yield node
    for child in node.children:
        yield from _walk_cst(child)


def _walk_statements(node: ast.AST) -> Iterator[ast.stmt]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        yield from _walk_statements(child)


def _remove_statements(module: cst.Module, removed: set[cst.CSTNode]) -> cst.Module:
    """Return a module without some statements; the comments above them stay."""
    body: list[cst.BaseStatement] = []
    above: list[cst.EmptyLine] = []
    for node in module.body:
        above += node.leading_lines
        if node not in removed:
            body.append(node.with_changes(leading_lines=above))
            above = []
    return module.with_changes(body=body, footer=[*above, *module.footer])


def _split_lines(_: cst.CSTNode, node: cst.CSTNode) -> Any:
    """Give each statement lines of its own, and empty lines no indentation."""
    match node:
        case cst.SimpleStatementLine(body=[_, _, *_]):
            lines = _split_statements(node)
            lines[0] = lines[0].with_changes(leading_lines=node.leading_lines)
            last = lines[-1].with_changes(trailing_whitespace=node.trailing_whitespace)
            return cst.FlattenSentinel([*lines[:-1], last])
        case cst.SimpleStatementSuite():
            return cst.IndentedBlock(_split_statements(node), header=node.trailing_whitespace)
        case cst.EmptyLine(comment=None):
            return node.with_changes(indent=False)
        case _:
            return node


def _split_statements(
    node: cst.SimpleStatementLine | cst.SimpleStatementSuite,
) -> list[cst.SimpleStatementLine]:
    default = cst.MaybeSentinel.DEFAULT
    return [cst.SimpleStatementLine([part.with_changes(semicolon=default)]) for part in node.body]


def _parse_module(text: str) -> cst.Module:
    return _rewrite_module(cst.parse_module(text), _split_lines)


def parse_statements(text: str) -> list[Statement]:
    """Return statements for writing, with the comments above them.

    Args:
        text: Python.
    """
    module = _parse_module(text)
    body = list(module.body)
    if body:
        body[0] = body[0].with_changes(leading_lines=[*module.header, *body[0].leading_lines])
    return body


def render_function(head: str, body: str) -> str:
    """Return a function as text.

    Args:
        head: Everything above its body: decorators, `def` and a docstring.
        body: Its statements, not indented.
    """
    node = cst.ensure_type(cst.parse_statement(head), cst.FunctionDef)
    block = cst.ensure_type(node.body, cst.IndentedBlock)
    statements = [*block.body, *parse_statements(body)]
    whole = block.with_changes(body=statements, footer=_parse_module(body).footer)
    return cst.Module([node.with_changes(body=whole)]).code


def find_imports(tree: ast.Module) -> list[ast.Import | ast.ImportFrom]:
    """Return the imports outside of blocks."""
    return [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]


def collect_imported_names(tree: ast.AST) -> dict[str, str]:
    """Return the dotted path of each imported name: `jax.numpy` for `jnp`.

    Args:
        tree: A script or a case file.
    """
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.partition(".")[0]
                names[alias.asname or root] = alias.name if alias.asname else root
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def resolve_path(node: ast.AST, names: Mapping[str, str]) -> str:
    """Return the dotted path of an expression, empty if it has none.

    Args:
        node: An expression, e.g. `jnp.ones`.
        names: Dotted path of each imported name; another name is its own path.
    """
    match node:
        case ast.Name(id=name):
            return names.get(name, name)
        case ast.Attribute(value=inner, attr=name):
            parent = resolve_path(inner, names)
            return parent and f"{parent}.{name}"
        case _:
            return ""


def resolve_callee(node: ast.AST, names: Mapping[str, str]) -> str:
    """Return the dotted path of the function that a call calls, empty for any other node.

    Args:
        node: A node.
        names: Dotted path of each imported name.
    """
    return resolve_path(node.func, names) if isinstance(node, ast.Call) else ""


def resolve_cst_path(node: cst.CSTNode, names: Mapping[str, str]) -> str:
    """Return the dotted path of an expression for writing, or of the function that it calls.

    Args:
        node: An expression, e.g. `jnp.ones` or `jnp.ones(3)`.
        names: Dotted path of each imported name.
    """
    root, dot, rest = (get_full_name_for_node(node) or "").partition(".")
    return names.get(root, root) + dot + rest


def walk_own_nodes(nodes: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """Yield nodes and those below them, except functions and classes: they do not run there.

    Args:
        nodes: Statements or expressions.
    """
    for node in nodes:
        if not isinstance(node, SCOPES):
            yield node
            yield from walk_own_nodes(list(ast.iter_child_nodes(node)))
