"""Imports of a module: how it writes a dotted name, and which imports fixes add, change, remove."""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import libcst as cst

from conformance.corpus.rewriting import precedes_imports

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LOADED: Final = frozenset(
    {"jax", "jax.core", "jax.dtypes", "jax.errors", "jax.lax", "jax.nn", "jax.numpy", "jax.random",
     "jax.sharding", "jax.tree", "jax.tree_util"}
)  # fmt: skip
"""Modules that `import jax` loads in every release; others need an import of their own."""
_COMMON: Final = {"jax.numpy": "jnp", "numpy": "np"}
"""Names that modules are imported as by convention."""

_NAMED: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler)


@dataclass(frozen=True, slots=True)
class _Binding:
    local: str
    name: str
    line: int


class ModuleImports:
    """The imports of a module, and those that fixes need.

    Args:
        tree: The module.

    Attributes:
        added: Import statements that fixes need.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.added: dict[str, None] = {}
        self._top = [*_list_bindings(tree.body)]
        self._modules = {
            alias.name: statement.lineno
            for statement in tree.body
            if isinstance(statement, ast.Import)
            for alias in statement.names
            if alias.asname is None
        }
        imported = {(one.local, one.name) for one in self._top}
        self._taken = {name for name, value in _list_bound(tree) if (name, value) not in imported}
        """Names that the module binds to something else, somewhere."""

    def is_hidden(self, code: str) -> bool:
        """Say whether the module has another meaning for a builtin function that code calls.

        Args:
            code: An expression.
        """
        names = {one.id for one in ast.walk(ast.parse(code)) if isinstance(one, ast.Name)}
        local = self._taken | {one.local for one in self._top}
        return any(hasattr(builtins, name) and name in local for name in names)

    def spell(
        self, name: str, line: int, root: str = "", stands_for: str = "", loaded: str = ""
    ) -> str | None:
        """Return how the module writes a dotted name, None if it cannot; add an import if needed.

        Args:
            name: The dotted name.
            line: Line in which it is written.
            root: A name that is known there.
            stands_for: The dotted name that `root` stands for.
            loaded: A module that is an attribute of `root`, directly or not.
        """
        module = name.rpartition(".")[0]
        is_loaded = module in LOADED or module in {"numpy", loaded}
        known = [_Binding(root, stands_for, 0)] if root and is_loaded else []
        usable = [
            one
            for one in (*known, *self._top)
            if one.line < line
            and (one.local == root or one.local not in self._taken)
            and (name == one.name or name.startswith(f"{one.name}."))
            and (is_loaded or one.name in {name, module})
        ]
        if usable:
            best = max(usable, key=lambda one: len(one.name))
            return best.local + name.removeprefix(best.name)
        return self._spell_with_import(name, module, loaded=is_loaded)

    def _spell_with_import(self, name: str, module: str, *, loaded: bool) -> str | None:
        package = module.partition(".")[0]
        wanted = module if module in _COMMON or not loaded else package
        local = _COMMON.get(wanted, "")
        bound = local or package
        others = {one.name for one in self._top if one.local == bound} - {wanted, package}
        if bound in self._taken or others:
            return None
        if wanted not in self._modules:
            self.added[f"import {wanted} as {local}" if local else f"import {wanted}"] = None
        return local + name.removeprefix(wanted) if local else name


def _list_bindings(body: Sequence[ast.stmt]) -> list[_Binding]:
    found = []
    for statement in body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            prefix = ""
            if isinstance(statement, ast.ImportFrom):
                if statement.level or not statement.module:
                    continue
                prefix = f"{statement.module}."
            for alias in statement.names:
                name = prefix + alias.name
                if not prefix and alias.asname is None:
                    name = name.partition(".")[0]
                local = alias.asname or name.removeprefix(prefix)
                found.append(_Binding(local, name, statement.lineno))
    return found


def _list_bound(tree: ast.Module) -> list[tuple[str, str]]:
    """Return every name that a module binds anywhere, imports with what they stand for."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found += [(one.local, one.name) for one in _list_bindings([node])]
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.append((node.id, ""))
        elif isinstance(node, ast.arg):
            found.append((node.arg, ""))
        elif isinstance(node, _NAMED):
            found.append((node.name or "", ""))
    return found


def rewrite_imports(
    original: cst.SimpleStatementLine,
    updated: cst.SimpleStatementLine,
    new_names: Mapping[cst.CSTNode, str],
) -> cst.SimpleStatementLine | cst.FlattenSentinel[cst.SimpleStatementLine]:
    """Return an import statement with other names; the names that it binds stay.

    Args:
        original: The statement, of one import.
        updated: The statement as it is now.
        new_names: New dotted names by alias of the original.
    """
    (before,), (statement,) = original.body, updated.body
    if not new_names or not isinstance(before, cst.Import | cst.ImportFrom):
        return updated
    assert isinstance(statement, cst.Import | cst.ImportFrom)  # noqa: S101 - like the original
    pairs = [*zip(_list_aliases(before), _list_aliases(statement), strict=True)]
    if isinstance(statement, cst.Import):
        names = [
            new.with_changes(name=cst.parse_expression(new_names[old])) if old in new_names else new
            for old, new in pairs
        ]
        return updated.with_changes(body=[statement.with_changes(names=names)])
    modules = {new_names[old].rpartition(".")[0] for old in new_names}
    left = [new for old, new in pairs if old not in new_names]
    if not left and len(modules) == 1:
        names = [_rename_alias(new, new_names[old]) for old, new in pairs]
        home = cst.parse_expression(modules.pop())
        return updated.with_changes(body=[statement.with_changes(module=home, names=names)])
    added = []
    for module in sorted(modules):
        texts = [
            _write_alias(_rename_alias(new, new_names[old]))
            for old, new in pairs
            if old in new_names and new_names[old].rpartition(".")[0] == module
        ]
        added.append(_make_statement(f"from {module} import {', '.join(texts)}"))
    if not left:
        first, *rest = added
        return cst.FlattenSentinel([first.with_changes(leading_lines=updated.leading_lines), *rest])
    if not statement.lpar:
        left[-1] = left[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    kept = updated.with_changes(body=[statement.with_changes(names=left)])
    return cst.FlattenSentinel([kept, *added])


def _list_aliases(statement: cst.Import | cst.ImportFrom) -> list[cst.ImportAlias]:
    return [] if isinstance(statement.names, cst.ImportStar) else [*statement.names]


def _rename_alias(alias: cst.ImportAlias, new: str) -> cst.ImportAlias:
    """Return an alias of another name that binds the same name."""
    local = alias.evaluated_alias or alias.evaluated_name
    name = new.rpartition(".")[2]
    as_name = None if name == local else cst.AsName(
        cst.Name(local), cst.SimpleWhitespace(" "), cst.SimpleWhitespace(" ")
    )  # fmt: skip
    return alias.with_changes(name=cst.Name(name), asname=as_name)


def _write_alias(alias: cst.ImportAlias) -> str:
    local = alias.evaluated_alias
    return f"{alias.evaluated_name} as {local}" if local else alias.evaluated_name


def _make_statement(text: str) -> cst.SimpleStatementLine:
    line = cst.parse_statement(text)
    assert isinstance(line, cst.SimpleStatementLine)  # noqa: S101 - an import
    return line


class ImportTidier(cst.CSTTransformer):
    """Adds the imports that fixes need, and removes those that they made unused.

    Args:
        imports: The imports, with those to add.
        replaced: Names and dotted modules that fixes replaced.
        keep_unused: Whether unused imports stay.
    """

    def __init__(self, imports: ModuleImports, replaced: set[str], *, keep_unused: bool) -> None:
        super().__init__()
        self._imports = imports
        self._replaced = set() if keep_unused else replaced
        self._used: set[str] = set()
        self._plain: set[str] = set()

    def visit_Module(self, node: cst.Module) -> None:  # noqa: N802
        """Collect the names that the module still uses."""
        tree = ast.parse(node.bytes)
        for one in ast.walk(tree):
            if isinstance(one, ast.Attribute):
                text = ast.unparse(one)
                self._used |= {text[:index] for index, char in enumerate(text) if char == "."}
            elif isinstance(one, ast.Name):
                self._used.add(one.id)
            elif isinstance(one, ast.Constant) and isinstance(one.value, str):
                self._used.add(one.value)  # as in `__all__`

    def leave_IndentedBlock(  # noqa: N802
        self,
        original_node: cst.IndentedBlock,  # noqa: ARG002 - as libcst calls it
        updated_node: cst.IndentedBlock,
    ) -> cst.IndentedBlock:
        """Remove the imports of a block that no other code uses."""
        return updated_node.with_changes(body=self._tidy(updated_node.body))

    def leave_Module(  # noqa: N802
        self,
        original_node: cst.Module,  # noqa: ARG002 - as libcst calls it
        updated_node: cst.Module,
    ) -> cst.Module:
        """Remove the imports that no other code uses, and add those that are missing."""
        body = [*updated_node.body]
        for text in self._imports.added:
            _insert_import(body, text)
        return updated_node.with_changes(body=self._tidy(body))

    def _tidy(self, body: Sequence[cst.BaseStatement]) -> list[cst.BaseStatement]:
        """Return the statements of a body without unused imports; their comments stay."""
        self._plain = {
            alias.evaluated_name
            for statement in map(_find_import, body)
            if isinstance(statement, cst.Import)
            for alias in statement.names
            if alias.asname is None
        }
        found: list[Any] = []
        above: Sequence[cst.EmptyLine] = ()
        for line in body:
            kept = self._tidy_line(line)
            if kept is None:
                above = getattr(line, "leading_lines", ())
                continue
            lines = getattr(kept, "leading_lines", ())
            if above and (not lines or any(one.comment for one in above)):
                kept = kept.with_changes(leading_lines=(*above, *lines))
            found.append(kept)
            above = ()
        return found or [*body]

    def _tidy_line(self, line: cst.BaseStatement) -> Any:
        """Return a statement without unused imports, None if nothing is left."""
        statement = _find_import(line)
        if statement is None:
            return line
        names = _list_aliases(statement)
        tidied = [self._tidy_alias(one, statement) for one in names]
        left = [one for one in tidied if one is not None]
        if tidied == names or not names:
            return line
        if not left:
            return None
        if not (isinstance(statement, cst.ImportFrom) and statement.lpar):
            left[-1] = left[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        return line.with_changes(body=[statement.with_changes(names=left)])

    def _tidy_alias(
        self, alias: cst.ImportAlias, statement: cst.Import | cst.ImportFrom
    ) -> cst.ImportAlias | None:
        """Return an alias, None if a fix made it unused; `import a.b` may become `import a`."""
        name = alias.evaluated_alias or alias.evaluated_name
        if name not in self._replaced or name in self._used:
            return alias
        root = name.partition(".")[0]
        is_dotted = isinstance(statement, cst.Import) and root != name
        if not is_dotted or root in self._plain or root not in self._used:
            return None
        self._plain.add(root)
        return alias.with_changes(name=cst.Name(root))


def _find_import(line: cst.BaseStatement) -> cst.Import | cst.ImportFrom | None:
    """Return the import that a line consists of."""
    if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1:
        (found,) = line.body
        if isinstance(found, cst.Import | cst.ImportFrom):
            return found
    return None


def _insert_import(body: list[Any], text: str) -> None:
    """Insert an import after the last one of its package that sorts before it."""
    new: Any = _make_statement(text)
    module = text.split()[1]
    package = module.partition(".")[0]
    imports = [(number, _find_import(line)) for number, line in enumerate(body)]
    before, first = None, None
    for number, statement in imports:
        if statement is None or precedes_imports(body[number]):
            continue
        first = number if first is None else first
        if not isinstance(statement, cst.Import):
            continue
        names = [one.evaluated_name for one in statement.names]
        if names == [module] and statement.names[0].evaluated_alias == _COMMON.get(module):
            return
        if names[0].partition(".")[0] == package and names[0] <= module:
            before = number
    if before is not None:
        body.insert(before + 1, new)
        return
    number = first if first is not None else sum(map(precedes_imports, body))
    following: Any = body[number]
    body[number : number + 1] = [
        new.with_changes(leading_lines=following.leading_lines),
        following.with_changes(leading_lines=()),
    ]
