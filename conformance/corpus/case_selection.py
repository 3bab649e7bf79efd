"""Selection of cases by family, id, glob or path, and of the sample in `smoke.toml`."""

from __future__ import annotations

import difflib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from conformance.corpus.discovery import (
    BrokenCasesError,
    discover,
    find_case_files,
    find_duplicates,
)
from conformance.errors import NothingSelectedError, UsageError
from conformance.files import MALFORMED, describe_os_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from conformance.corpus.case_index import CaseIndex
    from conformance.model.case import Case

FILE_NAME: Final = "smoke.toml"


def select_cases(
    selects: Sequence[str], cases_folder: Path, index: CaseIndex | None = None
) -> tuple[Case, ...]:
    """Return the selected cases.

    Args:
        selects: Families (`aot_placement`), case ids (`aot_placement/donated`, with or without
            its `[param]`), globs (`*/vmap_*`) or paths of files and folders; empty selects all
            cases of `cases_folder`.
        cases_folder: Folder of the project's own families.
        index: Index of parsed files.

    Returns:
        Distinct cases in order of file and line.

    Raises:
        NothingSelectedError: If a name matches no case; the message suggests the nearest.
        UsageError: If a path does not exist or a case file is broken.
    """
    paths = [Path(select) for select in selects if _is_path(select, cases_folder)]
    names = [select for select in selects if not _is_path(select, cases_folder)]
    files: dict[Path, None] = {}
    for path in paths:
        expanded = path.expanduser()
        if not expanded.exists():
            raise UsageError(f"{path} does not exist, expected a case file or a folder of cases")
        found = find_case_files(expanded)
        if not found:
            raise NothingSelectedError(f"{path} holds no case files, expected *.py with cases")
        files.update(dict.fromkeys(found))
    # By file and id: two files with one id must be reported as duplicates, not merged.
    chosen = {(case.file, case.id): case for case in discover(files, index)}
    if files and not chosen:
        raise NothingSelectedError(
            f"{', '.join(map(str, paths))}: no function is marked with @program or @probe"
        )
    # Files selected by path are parsed alone, so that a project with a broken file can run them.
    if names or not selects:
        own = discover(_find_files(names, cases_folder), index)
        named = _match_names(names, own) if names else own
        chosen.update({(case.file, case.id): case for case in named})
    if not chosen:
        raise NothingSelectedError(f"{cases_folder} holds no cases")
    if twice := list(find_duplicates(chosen.values())):
        raise BrokenCasesError(twice)
    return tuple(chosen.values())


def make_selects_absolute(selects: Sequence[str], cases_folder: Path) -> tuple[str, ...]:
    """Return selects whose paths do not depend on the working directory."""
    return tuple(
        str(Path(select).expanduser().absolute())
        # A call in a script is selected by `SCRIPT.py::NAME`.
        if _is_path(select.partition("::")[0], cases_folder)
        else select
        for select in selects
    )


def _is_path(select: str, cases_folder: Path) -> bool:
    """Say whether a select is a path. A name is a family, or begins with a family and a slash."""
    if select.endswith(".py") or select.startswith((".", "/", "~")):
        return True
    # A family wins over a folder of the same name in the working directory.
    return not (cases_folder / select.split("/", maxsplit=1)[0]).is_dir() and Path(select).exists()


def _find_files(names: Sequence[str], cases_folder: Path) -> list[Path]:
    """Return the case files that names can match.

    They are as few as possible, so that a broken file of another family is no error.
    """
    families = {cases_folder / name.split("/", maxsplit=1)[0] for name in names}
    if names and all(family.is_dir() for family in families):
        return [file for family in sorted(families) for file in find_case_files(family)]
    return find_case_files(cases_folder)


def _match_names(names: Iterable[str], cases: Sequence[Case]) -> list[Case]:
    chosen: list[Case] = []
    for name in names:
        matching = [case for case in cases if matches_name(case, name)]
        if not matching:
            raise NothingSelectedError(_describe_unknown(name, cases))
        chosen += matching
    return chosen


def matches_name(case: Case, name: str) -> bool:
    """Say whether a name matches a case: id, id without `[param]`, family, or glob."""
    plain = f"{case.family}/{case.name}"
    if name in {case.id, plain, case.family}:
        return True
    # Brackets are literal, because they are part of ids.
    pattern = name.replace("[", "[[]")
    # fnmatch itself would ignore case on some systems.
    return fnmatchcase(case.id, pattern) or fnmatchcase(plain, pattern)


def _describe_unknown(name: str, cases: Sequence[Case]) -> str:
    # A name without its family selects nothing, but suggests an id.
    suggestions = {case.name: f"{case.family}/{case.name}" for case in cases}
    suggestions |= {word: word for case in cases for word in (case.id, case.family)}
    near = difflib.get_close_matches(name, sorted(suggestions), n=1, cutoff=0.5)
    hint = f"did you mean {suggestions[near[0]]}?" if near else "`conformance list` lists the cases"
    return f"no case matches {name}: {hint}"


class _Sample(msgspec.Struct, forbid_unknown_fields=True):
    """The content of `smoke.toml`: families, case ids and globs."""

    select: list[str]


def select_sample(cases: Iterable[Case], folder: Path) -> tuple[Case, ...]:
    """Return the sample of some cases, or all cases if the project declares no sample.

    Args:
        cases: Cases to sample.
        folder: Folder of the project's families. Cases of other folders are in every sample.

    Raises:
        UsageError: If the file cannot be read, or a name in it matches no case.
    """
    file = folder / FILE_NAME
    cases = tuple(cases)
    names = _read_sample(file)
    if names is None:
        return cases
    own = {case.id: case for case in cases if case.file.is_relative_to(folder)}
    sample: set[str] = set()
    for name in names:
        found = {case.id for case in own.values() if matches_name(case, name)}
        # Without own cases, e.g. for a script, the names in the sample have nothing to match.
        if own and not found:
            raise UsageError(f"{file}: no case matches {name}, expected a family, an id or a glob")
        sample |= found
    return tuple(case for case in cases if case.id in sample or case.id not in own)


def _read_sample(file: Path) -> list[str] | None:
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {describe_os_error(error)}") from None
    try:
        return msgspec.toml.decode(content, type=_Sample).select
    except MALFORMED as error:
        raise UsageError(
            f"{file}: {error}; expected select = [...], names of families or cases"
        ) from None
