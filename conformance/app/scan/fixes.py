"""`conformance scan --fix`: code for a newer release, where the change is mechanical.

libcst, which rewrites sources, takes a quarter of a second to import: only `--fix` needs it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from conformance.app.context import ProjectContext
from conformance.app.scan.api import load_api, load_fixes
from conformance.corpus.project import PACKAGE
from conformance.errors import UsageError
from conformance.files import write_atomically
from conformance.golden.store import GoldenStore
from conformance.scan.api import NameState
from conformance.scan.code_base import INIT, CodeBase
from conformance.scan.codemods import FixedModule, PlannedFix, fix_module
from conformance.scan.fixes import FixTable
from conformance.scan.result import FileFix
from conformance.scan.signatures import find_misfit, parse_signature

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from conformance.scan.api import Api
    from conformance.scan.result import ScanResult
    from conformance.scan.signatures import CallShape
    from conformance.scan.uses import NameUse


def add_fixes(result: ScanResult) -> None:
    """Find the fixes of a scanned code base; no file is written.

    Args:
        result: The scan, which gets the fixes.
    """
    context = ProjectContext(PACKAGE)
    store = GoldenStore(context.project.cases)
    api = load_api(context, store, [result.new])
    fixes = load_fixes(context, store, [result.old, result.new])
    table = FixTable(fix for fix in fixes if fix.is_due(result.new))
    code = CodeBase(result.modules.values())
    planned = {
        file: [*_plan(module.uses, code, table, api)] for file, module in result.modules.items()
    }
    sources = {file: file.read_bytes() for file, found in planned.items() if found}
    modules, unreadable = _fix_all(sources, planned, partial(_fits, api))
    result.unreadable |= unreadable
    result.fixes = {
        file: FileFix(before=sources[file], after=module.source, fixed=module.fixed)
        for file, module in modules.items()
        if module.source != sources[file]
    }


def write_fixes(fixes: Mapping[Path, FileFix]) -> None:
    """Write the files that fixes change.

    Args:
        fixes: The fixes by file.

    Raises:
        UsageError: If a file has changed since it was read; then none is written.
        InfrastructureError: If the disk fails.
    """
    for file, one in fixes.items():
        if file.read_bytes() != one.before:
            raise UsageError(f"{file}: has changed since it was read; run the command again")
    for file, one in fixes.items():
        mode = file.stat().st_mode
        # A link stays one: the file that it leads to is written.
        write_atomically(file.resolve(), one.after)
        file.chmod(mode)


def _plan(
    uses: Sequence[NameUse], code: CodeBase, table: FixTable, api: Api
) -> Iterator[PlannedFix]:
    """Yield the fixes of uses of which it is certain for which name they stand."""
    for use in uses:
        found = code.follow_names(use)
        followed = found.names != use.names
        if found.guarded or found.tested or len(found.names) != 1 or (followed and use.imported):
            continue
        (name,) = found.names
        fix = table.find(name)
        if fix is None or not fix.concerns(found.call):
            continue
        planned = PlannedFix(use=found, fix=fix, followed=followed)
        if not fix.code and _is_missing(api, planned.new_name, is_exact=name == fix.old):
            continue
        yield planned


def _is_missing(api: Api, name: str, *, is_exact: bool) -> bool:
    """Say whether the wanted release lacks a name; the table knows those of the fixes."""
    resolved = api.resolve(name)
    if resolved is None:
        return not is_exact
    return api.get_state(resolved[0], api.releases[-1]) is NameState.ABSENT


def _fits(api: Api, name: str, call: CallShape) -> bool:
    """Say whether a call fits the wanted release, as far as its signature is known."""
    resolved = api.resolve(name)
    if resolved is None or resolved[1]:
        return True
    signature = parse_signature(api.get_signature(resolved[0], api.releases[-1]))
    return signature is None or not find_misfit(signature, call)


def _fix_all(
    sources: Mapping[Path, bytes],
    planned: Mapping[Path, Sequence[PlannedFix]],
    fits: partial[bool],
) -> tuple[dict[Path, FixedModule], dict[Path, str]]:
    """Return all modules after their fixes, and the files that libcst cannot parse.

    A module that passes a name on must not be fixed alone: where a call of the name elsewhere
    cannot be fixed, or the module itself cannot, the fix is made nowhere.
    """
    blocked: set[str] = set()
    while True:
        modules, unreadable = {}, {}
        for file, source in sources.items():
            allowed = [one for one in planned[file] if one.fix.id not in blocked]
            try:
                modules[file] = fix_module(
                    source, str(file), allowed, fits, is_package=file.stem == INIT
                )
            except UsageError as error:  # libcst knows less of new syntax than Python
                unreadable[file] = str(error).removeprefix(f"{file}: ")
        passed_on = {
            one.fix.id
            for found in planned.values()
            for one in found
            if one.followed and one.renames and one.fix.changes_call
        }
        failed = {one.fix.id for module in modules.values() for one in module.failed}
        if not (more := failed & passed_on - blocked):
            return modules, unreadable
        blocked |= more
