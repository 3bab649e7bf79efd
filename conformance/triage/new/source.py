"""A script that is rewritten: `ast` reads it, libcst writes it, so that the rest stays as written.

Patterns over `ast` are short, and it evaluates literals; libcst keeps comments and layout, and
indents what moves into another block. Both trees have the same statements in the same order.
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
"""What has lines of its own."""


class ScriptSource:
    """A script, each statement of which has lines of its own.

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
        self.names = imported_names(self.tree)

    @classmethod
    def parse(cls, text: str) -> ScriptSource:
        """Return the source of a script.

        Args:
            text: Python.
        """
        return cls(_parsed(text))

    @cached_property
    def _written(self) -> Mapping[ast.stmt, Statement]:
        """The statements for writing, by those for reading."""
        collector = _Collector()
        self._module.visit(collector)
        return dict(zip(_statements(self.tree), collector.found, strict=True))

    def code(self, nodes: Sequence[ast.stmt]) -> str:
        """Return statements as they are written, with the indentation of a module.

        Args:
            nodes: Statements that follow each other.
        """
        return cst.Module([self._written[node] for node in nodes]).code

    def segment(self, node: ast.expr) -> str:
        """Return the source text of an expression."""
        return ast.get_source_segment(self.text, node) or ast.unparse(node)

    def replace(self, changes: Mapping[ast.stmt, str]) -> ScriptSource:
        """Return the source with other statements in the place of some.

        Args:
            changes: The new statements as text, by the one that they replace. The comments beside
                it stay. Only a statement outside of blocks is replaced by nothing.
        """
        texts: dict[cst.CSTNode, str] = {self._written[node]: changes[node] for node in changes}
        gone: set[cst.CSTNode] = set()

        def put(original: cst.CSTNode, node: cst.CSTNode) -> Any:
            if isinstance(node, cst.Module):
                return _without(node, gone)
            if original not in texts or not isinstance(node, Statement):
                return node
            if not (new := parse_statements(texts[original])):
                gone.add(node)
                return node
            above = [*node.leading_lines, *new[0].leading_lines]
            new[0] = new[0].with_changes(leading_lines=above)
            trailing = getattr(node, "trailing_whitespace", None)
            if trailing and trailing.comment and isinstance(new[-1], cst.SimpleStatementLine):
                new[-1] = new[-1].with_changes(trailing_whitespace=trailing)
            return cst.FlattenSentinel(new)

        return self.transform(put) if changes else self

    def insert(self, before: ast.stmt, text: str) -> ScriptSource:
        """Return the source with more statements before one, below the comments above it."""
        place = self._written[before]
        first, *more = parse_statements(text)
        first = first.with_changes(leading_lines=place.leading_lines)

        def put(original: cst.CSTNode, node: cst.CSTNode) -> Any:
            if original is not place:
                return node
            return cst.FlattenSentinel([first, *more, node.with_changes(leading_lines=[])])

        return self.transform(put)

    def transform(self, rewrite: Rewrite) -> ScriptSource:
        """Return the source with other nodes in the place of some.

        Args:
            rewrite: Returns the node to put in the place of one, given that as it was, and with
                what is below it rewritten.
        """
        return ScriptSource(_rewritten(self._module, rewrite))


class _Transformer(cst.CSTTransformer):
    def __init__(self, rewrite: Rewrite) -> None:
        super().__init__()
        self._rewrite = rewrite

    def on_leave(self, original_node: cst.CSTNodeT, updated_node: cst.CSTNodeT) -> Any:
        return self._rewrite(original_node, updated_node)


def _rewritten(module: cst.Module, rewrite: Rewrite) -> cst.Module:
    return cst.ensure_type(module.visit(_Transformer(rewrite)), cst.Module)


class _Collector(cst.CSTVisitor):
    """Collects statements in their order."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Statement] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, Statement):
            self.found.append(node)
        return True


def _without(module: cst.Module, gone: set[cst.CSTNode]) -> cst.Module:
    """Return a module without some statements; the comments above them stay."""
    body: list[cst.BaseStatement] = []
    above: list[cst.EmptyLine] = []
    for node in module.body:
        above += node.leading_lines
        if node not in gone:
            body.append(node.with_changes(leading_lines=above))
            above = []
    return module.with_changes(body=body, footer=[*above, *module.footer])


def _one_per_line(_: cst.CSTNode, node: cst.CSTNode) -> Any:
    """Give each statement lines of its own, and empty lines no indentation."""
    match node:
        case cst.SimpleStatementLine(body=[_, _, *_]):
            lines = _lines_of(node)
            lines[0] = lines[0].with_changes(leading_lines=node.leading_lines)
            last = lines[-1].with_changes(trailing_whitespace=node.trailing_whitespace)
            return cst.FlattenSentinel([*lines[:-1], last])
        case cst.SimpleStatementSuite():
            return cst.IndentedBlock(_lines_of(node), header=node.trailing_whitespace)
        case cst.EmptyLine(comment=None):
            return node.with_changes(indent=False)
        case _:
            return node


def _lines_of(
    node: cst.SimpleStatementLine | cst.SimpleStatementSuite,
) -> list[cst.SimpleStatementLine]:
    alone = [one.with_changes(semicolon=cst.MaybeSentinel.DEFAULT) for one in node.body]
    return [cst.SimpleStatementLine([one]) for one in alone]


def _parsed(text: str) -> cst.Module:
    return _rewritten(cst.parse_module(text), _one_per_line)


def parse_statements(text: str) -> list[Statement]:
    """Return statements for writing, with the comments above them.

    Args:
        text: Python.
    """
    module = _parsed(text)
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
    module = _parsed(body)
    whole = block.with_changes(body=[*block.body, *parse_statements(body)], footer=module.footer)
    return cst.Module([node.with_changes(body=whole)]).code


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        yield from _statements(child)


def find_imports(tree: ast.Module) -> list[ast.Import | ast.ImportFrom]:
    """Return the imports outside of blocks."""
    return [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]


def imported_names(tree: ast.AST) -> dict[str, str]:
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


def dotted(node: ast.AST, names: Mapping[str, str]) -> str:
    """Return the dotted path of an expression, empty if it has none.

    Args:
        node: `jnp.ones`.
        names: What imported names stand for; others stand for themselves.
    """
    match node:
        case ast.Name(id=name):
            return names.get(name, name)
        case ast.Attribute(value=inner, attr=name):
            parent = dotted(inner, names)
            return parent and f"{parent}.{name}"
        case _:
            return ""


def called(node: ast.AST, names: Mapping[str, str]) -> str:
    """Return the dotted path of what is called, empty where a node is no call of one.

    Args:
        node: Any.
        names: What imported names stand for.
    """
    return dotted(node.func, names) if isinstance(node, ast.Call) else ""


def qualified(node: cst.CSTNode, names: Mapping[str, str]) -> str:
    """Return the dotted path of an expression for writing, or of what it calls.

    Args:
        node: `jnp.ones`, `jnp.ones(3)`.
        names: What imported names stand for.
    """
    root, dot, rest = (get_full_name_for_node(node) or "").partition(".")
    return names.get(root, root) + dot + rest


def walk_own_nodes(nodes: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """Yield what runs where some nodes stand: nothing of the functions and classes they define.

    Args:
        nodes: Statements, or what is below them.
    """
    for node in nodes:
        if not isinstance(node, SCOPES):
            yield node
            yield from walk_own_nodes(list(ast.iter_child_nodes(node)))


SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
"""Nodes whose bodies do not run where they are written."""
