"""Kinds of words on the command line that a shell completes: cases, cells, matrices, suites."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click
from click.shell_completion import CompletionItem

from conformance.app.context import load_context
from conformance.cells.matrix import list_matrices
from conformance.corpus.discovery import discover, find_case_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from conformance.app.context import ProjectContext

    Base = click.ParamType[str]
else:
    # `ParamType` is generic from click 8.2 on.
    Base = click.ParamType

PLATFORMS: Final = (
    "cpu", "cpu4", "cpu8", "cpu-mp2", "gpu", "tpu", "tpu:v5e:2x2", "cuda:h100:1x1x4",
)  # fmt: skip
"""Platforms that are proposed as examples of all spellings."""
_NAMED: Final = ("latest", "latest-1", "nightly")


class Words(Base):
    """A kind of words, which is not validated.

    Args:
        name: Name of the kind.
        find: Returns candidate words for an incomplete word.
        files: Whether a path is accepted, too.
    """

    def __init__(
        self,
        name: str,
        find: Callable[[ProjectContext, str], Iterable[str]],
        *,
        files: bool = False,
    ) -> None:
        self.name = name
        self._find = find
        self._files = files

    def shell_complete(
        self,
        ctx: click.Context,
        param: click.Parameter,
        incomplete: str,
    ) -> list[CompletionItem]:
        """Return the words that begin with the incomplete word; if none does, files."""
        try:
            found = dict.fromkeys(self._find(load_context(), incomplete))
        except Exception:  # noqa: BLE001 - a key that is pressed shall print no error
            found = {}
        # Filtered here, so that a list may contain more words than those that match.
        items = [CompletionItem(word) for word in found if word.startswith(incomplete)]
        if not items and self._files:
            return [CompletionItem(incomplete, type="file")]
        return items


def _list_families(context: ProjectContext, incomplete: str) -> Iterator[str]:
    folder = context.project.cases
    yield from sorted({one.family for one in context.settings.functions})
    for family in sorted(folder.iterdir()) if folder.is_dir() else ():
        if family.name.startswith(incomplete) and next(family.glob("*.py"), None) is not None:
            yield family.name


def _list_cases(context: ProjectContext, incomplete: str) -> Iterator[str]:
    """Yield families, and the cases of a family if it is the only match."""
    families = list(_list_families(context, incomplete.partition("/")[0]))
    yield from families
    meant = [name for name in families if name.startswith(incomplete.partition("/")[0])]
    if "/" in incomplete:
        meant = [name for name in meant if name == incomplete.partition("/")[0]]
    # Parsing the files of one family is fast enough for a key; all families are not.
    if len(meant) == 1:
        yield from (f"{one.family}/{one.case}" for one in context.settings.functions)
        folder = context.project.cases / meant[0]
        files = find_case_files(folder) if folder.is_dir() else ()
        for case in discover(files, context.case_index):
            yield from (f"{case.family}/{case.name}", case.id)


def _list_cells(context: ProjectContext, incomplete: str) -> Iterator[str]:
    """Yield releases, the newest first; after `@` the platforms."""
    release, sign, _ = incomplete.partition("@")
    if sign:
        # Bash replaces the whole word, so each proposal repeats the release.
        yield from (f"{release}@{platform}" for platform in PLATFORMS)
        return
    yield from _NAMED
    known = context.releases
    for version in reversed(known.versions):
        yield version
        yield f"jax{version}-py{known.find_python(version).replace('.', '')}-cpu8"


def _list_suites(context: ProjectContext, _incomplete: str) -> Iterable[str]:
    # Imported late: only completion needs it, and every command imports this module.
    from conformance.suites.catalogue.definition import find_suites  # noqa: PLC0415

    return find_suites(context.project.suites)


def _list_libraries(context: ProjectContext, _incomplete: str) -> Iterable[str]:
    return sorted(file.stem for file in context.project.ecosystem.glob("*.toml"))


CASES: Final = Words("case", _list_cases, files=True)
"""Families and cases, or files of cases."""
FAMILIES: Final = Words("family", _list_families)
"""Families."""
CELLS: Final = Words("cell", _list_cells)
"""Cell ids and selectors."""
RELEASES: Final = Words("release", _list_cells, files=True)
"""An end of a range: a release or a file of pins."""
PLATFORM: Final = Words("platform", lambda *_: PLATFORMS)
"""Platforms."""
MATRICES: Final = Words(
    "matrix", lambda context, _: list_matrices(context.matrix_folders), files=True
)
"""Matrices by name, or files of them."""
SUITES: Final = Words("suite", _list_suites, files=True)
"""Suites by name, or files of tests."""
LIBRARIES: Final = Words("library", _list_libraries)
"""Libraries of the ecosystem."""
KINDS: Final = {
    one.name: one
    for one in (CASES, FAMILIES, CELLS, RELEASES, PLATFORM, MATRICES, SUITES, LIBRARIES)
}
"""Each kind by its name."""
