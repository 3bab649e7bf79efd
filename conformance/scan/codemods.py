"""Fixes of the uses of a module, written into its source with libcst.

Everything else of the source stays as it is: formatting, comments, encoding and line ends.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from conformance.corpus.rewriting import parse_source
from conformance.scan.call_rewriting import (
    describe_shape,
    dotted_name,
    replace_call,
    rewrite_arguments,
)
from conformance.scan.import_rewriting import ImportTidier, ModuleImports, rewrite_imports

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from conformance.scan.fixes import CodeFix
    from conformance.scan.signatures import CallShape
    from conformance.scan.uses import NameUse

_LINE_END: Final = re.compile(r"\r\n|\r|\n")
Place = tuple[int, int]
"""Line and column of a use, both from 1; the column counts bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFix:
    """A fix of a use.

    Attributes:
        use: The use, which stands for one name.
        fix: The fix of this name, or of the module that it is in.
        followed: Whether the name comes from another module of the code base.
    """

    use: NameUse
    fix: CodeFix
    followed: bool = False

    @property
    def name(self) -> str:
        """The dotted name of the use."""
        (name,) = self.use.names
        return name

    @property
    def new_name(self) -> str:
        """The dotted name after the fix."""
        return self.fix.new + self.name.removeprefix(self.fix.old)

    @property
    def place(self) -> Place:
        """Line and column."""
        return self.use.line, self.use.column

    @property
    def renames(self) -> bool:
        """Whether the name is another one after the fix."""
        return self.fix.new != self.fix.old


@dataclass(slots=True)
class FixedModule:
    """A module after its fixes.

    Attributes:
        source: Its source.
        fixed: Fixes that were made, by their places.
        failed: Fixes that could not be made.
    """

    source: bytes
    fixed: dict[Place, CodeFix] = field(default_factory=dict)
    failed: list[PlannedFix] = field(default_factory=list)


def fix_module(
    source: bytes,
    where: str,
    planned: Sequence[PlannedFix],
    fits: Callable[[str, CallShape], bool],
    *,
    is_package: bool = False,
) -> FixedModule:
    """Return a module after its fixes.

    A fix that changes the name and the arguments of a call is made everywhere or nowhere in the
    module, because all calls may share one import.

    Args:
        source: Source of the module.
        where: Its file, for messages.
        planned: Uses with their fixes.
        fits: Says whether a call of a dotted name fits the wanted release.
        is_package: Whether other modules may import what the module imports and does not use.

    Raises:
        UsageError: If the source cannot be read.
    """
    tree = parse_source(source, where)
    failed: list[PlannedFix] = []
    while True:
        left = [one for one in planned if one not in failed]
        result = _fix_once(tree, source, left, fits, is_package=is_package)
        result.failed += failed
        blocked = {one.fix.id for one in result.failed if one.renames and one.fix.changes_call}
        more = [one for one in left if one.fix.id in blocked]
        if not more:
            return result
        failed = [*result.failed, *(one for one in more if one not in result.failed)]


def _fix_once(
    tree: cst.Module,
    source: bytes,
    planned: Sequence[PlannedFix],
    fits: Callable[[str, CallShape], bool],
    *,
    is_package: bool,
) -> FixedModule:
    # A name that an import binds which stays, e.g. one in a `try`, keeps its calls, too.
    bound = {one.fix.id for one in planned if one.use.imported or one.use.direct}
    planned = [one for one in planned if one.followed or not one.renames or one.fix.id in bound]
    if not planned:
        return FixedModule(source)
    wrapper = MetadataWrapper(tree, unsafe_skip_copy=True)
    imports = ModuleImports(ast.parse(source))
    rewriter = _Rewriter({one.place: one for one in planned}, imports, fits, tree.code)
    changed = wrapper.visit(rewriter)
    fixed = [one for one in rewriter.fixed if one not in rewriter.failed]
    # A name is fixed with the place that binds it.
    fixed = [
        one for one in fixed if one.followed or not one.renames or one.fix.id in rewriter.sources
    ]
    changed = changed.visit(ImportTidier(imports, rewriter.unused, keep_unused=is_package))
    # A use that is written in some unusual way, such as an import after `if x:` in one line, is one
    # that cannot be fixed.
    failed = [
        one
        for one in planned
        if one in rewriter.failed or (one.renames and one not in rewriter.fixed)
    ]
    return FixedModule(changed.bytes, {one.place: one.fix for one in fixed}, failed)


class _Rewriter(cst.CSTTransformer):
    """Rewrites the uses of a module at their places."""

    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(
        self,
        planned: Mapping[Place, PlannedFix],
        imports: ModuleImports,
        fits: Callable[[str, CallShape], bool],
        code: str,
    ) -> None:
        super().__init__()
        self._planned = planned
        self._wanted = {line for line, _ in planned}
        self._imports = imports
        self._fits = fits
        self._lines = _LINE_END.split(code)
        self._names: dict[cst.CSTNode, PlannedFix] = {}
        """Nodes of names, each with its fix."""
        self._found: set[Place] = set()
        self.fixed: list[PlannedFix] = []
        self.failed: list[PlannedFix] = []
        self.sources: set[str] = set()
        """Ids of fixes that were made where the name is imported or written in full."""
        self.unused: set[str] = set()
        """Names and modules that other names replaced."""

    def _find(self, node: cst.CSTNode) -> PlannedFix | None:
        """Return the fix whose use begins where a node begins."""
        start = self.get_metadata(PositionProvider, node).start
        if start.line not in self._wanted:
            return None
        before = self._lines[start.line - 1][: start.column]
        return self._planned.get((start.line, len(before.encode()) + 1))

    # Names: the outermost attribute at a place is visited first.

    def visit_Attribute(self, node: cst.Attribute) -> None:  # noqa: N802
        """Find the part of a dotted name that a fix replaces."""
        self._claim(node)

    def visit_Name(self, node: cst.Name) -> None:  # noqa: N802
        """Find a name that stands for one that a fix replaces."""
        self._claim(node)

    def _claim(self, node: cst.Attribute | cst.Name) -> None:
        planned = self._find(node) if dotted_name(node) is not None else None
        if planned is None or planned.use.imported or planned.place in self._found:
            return
        self._found.add(planned.place)
        rest = planned.name.removeprefix(planned.fix.old)
        target: cst.BaseExpression = node
        for _ in range(rest.count(".")):
            if not isinstance(target, cst.Attribute):
                break
            target = target.value
        self._names[target] = planned

    def leave_Attribute(  # noqa: N802
        self, original_node: cst.Attribute, updated_node: cst.Attribute
    ) -> cst.BaseExpression:
        """Replace a dotted name."""
        planned = self._names.get(original_node)
        if planned is None or not self._note_name(planned):
            return updated_node
        written = dotted_name(original_node) or ""
        root, dot, rest = written.partition(".")
        if planned.followed or not planned.fix.old.endswith(dot + rest):
            return updated_node
        stands_for = planned.fix.old.removesuffix(dot + rest)
        home = planned.fix.old.rpartition(".")[0]
        spelled = self._imports.spell(planned.fix.new, planned.use.line, root, stands_for, home)
        if spelled is None:
            self.failed.append(planned)
            return updated_node
        self.sources.add(planned.fix.id)
        self._note_unused(written, root)
        new = cst.parse_expression(spelled)
        return new.with_changes(lpar=updated_node.lpar, rpar=updated_node.rpar)

    def leave_Name(  # noqa: N802
        self, original_node: cst.Name, updated_node: cst.Name
    ) -> cst.BaseExpression:
        """Note a name whose import is rewritten."""
        planned = self._names.get(original_node)
        if planned is not None:
            self._note_name(planned)
        return updated_node

    def _note_name(self, planned: PlannedFix) -> bool:
        """Note what happens to a use of a name; say whether another name replaces it."""
        if not planned.renames:
            return False
        if not planned.fix.changes_call:
            self.fixed.append(planned)
        elif planned.use.call is None:
            # The arguments of its calls are unknown.
            self.failed.append(planned)
        return not planned.fix.code

    def _note_unused(self, written: str, root: str) -> None:
        self.unused.add(root)
        self.unused.add(written.rpartition(".")[0])

    # Calls

    def leave_Call(  # noqa: N802
        self, original_node: cst.Call, updated_node: cst.Call
    ) -> cst.BaseExpression:
        """Rewrite the arguments of a call, or replace it."""
        planned, skipped = self._names.get(original_node.func), 0
        first = original_node.args[0].value if original_node.args else None
        if first is not None and first in self._names:
            inner = self._names[first]
            if inner.use.call is not None and inner.use.call.partial:
                planned, skipped = inner, 1
        if planned is None or not planned.fix.changes_call or planned.use.call is None:
            return updated_node
        if planned.use.call.partial != bool(skipped):
            return updated_node
        new = self._rewrite_call(updated_node, planned, skipped)
        if new is None:
            self.failed.append(planned)
            return updated_node
        if new is not updated_node or planned.renames:
            self.fixed.append(planned)
        return new

    def _rewrite_call(
        self, call: cst.Call, planned: PlannedFix, skipped: int
    ) -> cst.BaseExpression | None:
        fix = planned.fix
        if not fix.code:
            new = rewrite_arguments(call, fix, skipped=skipped)
            if new is not None and not self._fits(fix.new, describe_shape(new, skipped=skipped)):
                return None
            return new
        if skipped or planned.followed:
            return None
        written = dotted_name(call.func) or ""
        root = written.partition(".")[0]
        if self._imports.is_hidden(fix.code):
            return None
        stands_for = fix.old.removesuffix(written.removeprefix(root))
        home = fix.old.rpartition(".")[0]
        known = (root, stands_for, home) if "." in written else ()
        new_call = replace_call(
            call, fix, lambda name: self._imports.spell(name, planned.use.line, *known)
        )
        if new_call is not None:
            self._note_unused(written, root)
            if "." in written:
                self.sources.add(fix.id)
        return new_call

    # Imports

    def leave_SimpleStatementLine(  # noqa: N802
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> Any:
        """Rewrite an import."""
        wanted: dict[cst.CSTNode, PlannedFix] = {}
        for statement in original_node.body:
            if isinstance(statement, cst.Import | cst.ImportFrom) and not isinstance(
                statement.names, cst.ImportStar
            ):
                found = ((alias, self._find(alias)) for alias in statement.names)
                wanted |= {alias: one for alias, one in found if one is not None}
        if not wanted:
            return updated_node
        if len(original_node.body) > 1:
            self.failed += wanted.values()
            return updated_node
        done = {alias: one for alias, one in wanted.items() if not one.fix.code and one.renames}
        for alias, one in wanted.items():
            if one.fix.code:
                # The import goes when no call is left that needs it.
                assert isinstance(alias, cst.ImportAlias)  # noqa: S101 - found so
                self.unused.add(alias.evaluated_alias or alias.evaluated_name)
                self.fixed.append(one)
        self.fixed += done.values()
        self.sources |= {one.fix.id for one in wanted.values()}
        new_names = {alias: one.new_name for alias, one in done.items()}
        return rewrite_imports(original_node, updated_node, new_names)
