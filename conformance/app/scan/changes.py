"""`conformance scan`: what changes for a code base between two releases."""

from __future__ import annotations

import os
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from conformance.app.context import ProjectContext, count_usable_cores
from conformance.app.scan.api import VARIANT, load_api
from conformance.app.scan.effects import EffectReader
from conformance.app.scan.reach import RunFiles, run_command
from conformance.corpus.behaviour_changes import load_families
from conformance.corpus.project import PACKAGE
from conformance.engine.process_pool import map_in_processes
from conformance.errors import UsageError
from conformance.files import describe_os_error
from conformance.garbage_collection import pause_garbage_collection
from conformance.golden.store import GoldenStore
from conformance.scan import notebooks
from conformance.scan.api import ROOT
from conformance.scan.code_base import CodeBase, name_module
from conformance.scan.hits import HitFinder, HitKind
from conformance.scan.result import FileHit, ReachedUse, ScanResult
from conformance.scan.scopes import RESULT
from conformance.scan.signatures import CallShape
from conformance.scan.touches import list_followed, parse_touch
from conformance.scan.uses import ModuleUses, NameUse, find_uses

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from conformance.corpus.behaviour_changes import BehaviourChange
    from conformance.scan.hits import Hit
    from conformance.scan.notebooks import CellLine
    from conformance.scan.reached import ReachedCode, ReachedUses
    from conformance.scan.touches import Touch

PRIMITIVES: Final = "jax.lax"
"""Module whose functions bind the primitives of their names."""
SUFFIXES: Final = (".py", notebooks.SUFFIX)
SKIPPED: Final = frozenset({"node_modules", "site-packages", "__pycache__", "build", "dist"})
"""Folders that are not the code base's own; so are those whose names begin with a dot."""
CHUNK: Final = 8
"""Files that a process gets at once."""
OF_NAMES: Final = frozenset({HitKind.REMOVED, HitKind.DEPRECATED})
"""Kinds of hits that need no call."""
ANY_CALL: Final = CallShape(
    positions=0, keywords=frozenset(), more_positions=True, more_keywords=True
)
"""A call whose arguments the source does not show."""


@dataclass(frozen=True, slots=True)
class _ScannedFile:
    file: Path
    lines: int = 0
    module: ModuleUses | None = None
    places: tuple[CellLine, ...] = ()
    problem: str = ""


def scan(
    paths: Sequence[Path],
    old: str,
    new: str,
    *,
    every: bool = False,
    command: str = "",
    timeout: float | None = None,
) -> ScanResult:
    """Return what changes for a code base between two releases.

    Args:
        paths: Files and folders of the code base.
        old: The present release, or a specifier of one.
        new: The wanted release.
        every: Whether a line of the history that names no parameter is a hit of each call of its
            names.
        command: Command that shows which uses are reached, empty to run nothing.
        timeout: Timeout of the command in seconds, None for no limit.

    Raises:
        UsageError: If a path does not exist or holds no Python, or the ends are in the wrong order.
    """
    # The corpus that comes with the package: a project has cases of its own.
    context = ProjectContext(PACKAGE)
    releases = [*context.releases.versions]
    old, new = (context.find_release(name) for name in (old, new))
    if releases.index(old) >= releases.index(new):
        raise UsageError(f"--from {old} --to {new}: expected an older and a newer release")
    files = list(dict.fromkeys(list_files(paths)))
    changes = _load_changes(context, _list_between(context, old, new))
    followed = list_followed(touch for touches in changes.values() for touch in touches)
    with _read_files(files, followed) as found:
        # Meanwhile: the workers need no names of releases.
        finder = _make_finder(context, changes, old, new, every=every)
        scanned = list(found)
    result = ScanResult(old, new, files=len(files), lines=sum(one.lines for one in scanned))
    result.unreadable = {one.file: one.problem for one in scanned if one.module is None}
    result.modules = {
        one.file: one.module for one in scanned if one.module is not None and not one.places
    }
    # After everything that may be wrong with the arguments: a command may take long.
    result.run = run_command(command, timeout) if command else None
    ran = None if result.run is None else RunFiles(result.run.code, files)
    collector = _HitCollector(finder, ran, every=every)
    result.hits = [*collector.collect(scanned)]
    result.uses = collector.uses
    if ran is not None and result.run is not None:
        libraries = ran.list_libraries()
        with _read_files([*libraries], followed) as found:
            result.library_hits = [
                replace(one, library=libraries[one.file])
                for one in collector.collect([*found])
                if one.reached
            ]
        result.run.uses = collector.reached
        result.run.elsewhere = _find_elsewhere(result.run.code, finder, every=every)
    return result


def _read_files(
    files: Sequence[Path], followed: frozenset[str]
) -> AbstractContextManager[Iterable[_ScannedFile]]:
    """Read files in several processes."""
    packages = {name_module(file)[0].partition(".")[0] for file in files} | {ROOT}
    read = partial(_scan_file, packages=frozenset(packages), followed=followed)
    cores = count_usable_cores()
    return map_in_processes(read, files, processes=cores, new=len(files), chunk=CHUNK)


@dataclass(slots=True)
class _HitCollector:
    """Collects hits, and the uses that a command reached.

    Attributes:
        finder: Finds the hits of a use.
        ran: The files that the command ran, None if none was run.
        every: Whether changes of behaviour of every name count.
        uses: Number of uses of public names so far.
        reached: Those that the command reached.
    """

    finder: HitFinder
    ran: RunFiles | None
    _: KW_ONLY
    every: bool
    uses: int = 0
    reached: list[ReachedUse] = field(default_factory=list)

    def collect(self, scanned: Sequence[_ScannedFile]) -> Iterator[FileHit]:
        """Yield the hits of files that belong together."""
        code = CodeBase(one.module for one in scanned if one.module is not None)
        for one in scanned:
            if one.module is None:
                continue
            uses = [*map(code.follow_names, one.module.uses)]
            ran = None if self.ran is None else self.ran.open(one.file)
            yield from self._collect_uses(one, uses, ran)
            if ran is not None:
                yield from self._collect_others(one.file, uses, ran)

    def _collect_uses(
        self, scanned: _ScannedFile, uses: Iterable[NameUse], ran: ReachedUses | None
    ) -> Iterator[FileHit]:
        """Yield the hits of the uses in a file, each change once for each line."""
        seen = set()
        for use in sorted(uses, key=lambda one: (one.line, one.column)):
            public = sorted(filter(_is_public, use.names))
            self.uses += bool(use.option or public)
            if ran and public and not use.imported:
                called = use.call is not None
                if ran.is_reached(use.line, use.column, called=called):
                    name = " | ".join(public)
                    self.reached.append(ReachedUse(name, scanned.file, use.line, use.call))
            for hit in self.finder.find(use):
                key = (use.line, hit.kind, hit.name, hit.text)
                if key in seen:
                    continue
                seen.add(key)
                cell = scanned.places[use.line - 1] if scanned.places else None
                called = use.call is not None and hit.kind not in OF_NAMES
                yield FileHit(
                    file=scanned.file, line=cell.line if cell else use.line, column=use.column,
                    hit=hit, cell=cell,
                    reached=ran.is_reached(use.line, use.column, called=called) if ran else None,
                )  # fmt: skip

    def _collect_others(
        self, file: Path, uses: Iterable[NameUse], ran: ReachedUses
    ) -> Iterator[FileHit]:
        """Yield the hits of names that the command reached, and that the source does not show."""
        known = {name for use in uses for name in use.names}
        self.reached += [
            ReachedUse(name, file, line) for line, name in ran.accesses if name not in known
        ]
        for line, names in ran.names:
            if not known.isdisjoint(names):
                continue
            self.reached.append(ReachedUse(names[0], file, line))
            use = NameUse(names=frozenset(names), line=line, column=1, call=ANY_CALL)
            for hit in self.finder.find(use):
                if self.every or hit.kind in OF_NAMES:
                    yield FileHit(file=file, line=line, column=1, hit=hit, reached=True)


def _find_elsewhere(code: ReachedCode, finder: HitFinder, *, every: bool) -> list[Hit]:
    """Return what changes for options in the environment, and for primitives with `every`."""
    uses = [
        NameUse(names=frozenset(), line=0, column=0, option=name.lower())
        for name in sorted(code.variables)
    ]
    if every:
        uses += [
            NameUse(names=frozenset({f"{PRIMITIVES}.{name}"}), line=0, column=0, call=ANY_CALL)
            for name in sorted(code.primitives)
        ]
    found = {(hit.release, hit.text): hit for use in uses for hit in finder.find(use)}
    return [*found.values()]


def _is_public(name: str) -> bool:
    return name.partition(".")[0] == ROOT and RESULT not in name


def make_finder(context: ProjectContext, old: str, new: str) -> HitFinder:
    """Return what finds the changes of uses of JAX between two releases.

    Args:
        context: The project, whose cases have the names and the history.
        old: The older release.
        new: The newer release.

    Raises:
        GoldenError: If a golden is corrupt or missing.
    """
    changes = _load_changes(context, _list_between(context, old, new))
    return _make_finder(context, changes, old, new, every=False)


def _make_finder(
    context: ProjectContext,
    changes: Mapping[BehaviourChange, Iterable[Touch]],
    old: str,
    new: str,
    *,
    every: bool,
) -> HitFinder:
    store = GoldenStore(context.project.cases)
    api = load_api(context, store, [old, *_list_between(context, old, new)])
    effects = EffectReader(context, store, VARIANT, old, new)
    return HitFinder(api, changes, old, new, matters=effects.has_effect, every=every)


def _list_between(context: ProjectContext, old: str, new: str) -> list[str]:
    """Return the releases after one, up to another one."""
    releases = [*context.releases.versions]
    return releases[releases.index(old) + 1 : releases.index(new) + 1]


def _load_changes(
    context: ProjectContext, releases: Collection[str]
) -> dict[BehaviourChange, tuple[Touch, ...]]:
    """Return the lines of the history that some releases show on CPUs, with their touches."""
    return {
        change: tuple(map(parse_touch, change.touches))
        for family in load_families(context.project.cases).values()
        for change in family.change
        if change.shown_at in releases and not change.platform
    }


def list_files(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield the Python files of a code base.

    Raises:
        UsageError: If a path does not exist, or holds no Python.
    """
    for path in paths:
        if path.is_file():
            yield path
            continue
        if not path.is_dir():
            raise UsageError(
                f"{path}: does not exist, expected a Python file, a notebook or a folder"
            )
        found = False
        for folder, folders, names in os.walk(path):
            folders[:] = sorted(
                name for name in folders if name not in SKIPPED and not name.startswith(".")
            )
            for name in sorted(names):
                if name.endswith(SUFFIXES):
                    found = True
                    yield Path(folder, name)
        if not found:
            raise UsageError(f"{path}: has no Python file and no notebook")


def _scan_file(file: Path, packages: frozenset[str], followed: frozenset[str]) -> _ScannedFile:
    try:
        content = file.read_bytes()
    except OSError as error:
        return _ScannedFile(file, problem=f"cannot be read: {describe_os_error(error)}")
    name, is_package = name_module(file)
    source: bytes | str = content
    places: tuple[CellLine, ...] = ()
    lines = content.count(b"\n")
    try:
        if file.suffix == notebooks.SUFFIX:
            notebook = notebooks.read_notebook(content)
            name, source, places = "", notebook.source, notebook.places
            lines = len(places)
        # A syntax tree has no cycles, and many nodes.
        with pause_garbage_collection():
            module = find_uses(
                source, name, is_package=is_package, packages=packages, results=followed
            )
    except SyntaxError as error:
        return _ScannedFile(file, lines, problem=_describe_syntax_error(error, places))
    except (ValueError, RecursionError) as error:
        return _ScannedFile(file, lines, problem=f"cannot be read as Python: {error}")
    return _ScannedFile(file, lines, module, places)


def _describe_syntax_error(error: SyntaxError, places: Sequence[CellLine]) -> str:
    where = f"line {error.lineno}"
    if places and error.lineno:
        cell = places[min(error.lineno, len(places)) - 1]
        where = f"cell {cell.cell}, line {cell.line}"
    return f"is no Python source: {error.msg} ({where})"
