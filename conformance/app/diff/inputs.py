"""The inputs of `conformance diff`: files, runs, or a case in two cells."""

from __future__ import annotations

import sys
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from conformance.cells.cell import PATH_PREFIX, is_cell_id, parse_cell
from conformance.cells.selectors import matches_selector, resolve_selector, split_platform
from conformance.compression import DecompressionError, decompress
from conformance.errors import ConformanceError, NothingSelectedError, UsageError
from conformance.files import describe_os_error
from conformance.ir.analysis import PARSERS, detect_kind
from conformance.ir.graph import IrSyntaxError
from conformance.ir.normal.text import is_canonical, read_head
from conformance.ir.text_diff import IrText
from conformance.wording import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from conformance.app.context import ProjectContext
    from conformance.engine.runs.directory import RunDirectory
    from conformance.model.record import Record
    from conformance.model.run import RunCell

STDIN: Final = "-"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
"""First bytes of Zstandard data, the compression of blobs."""


def read_text(name: str, kind: str | None) -> IrText:
    """Return the text of a file.

    Args:
        name: The file; `-` is standard input.
        kind: The kind of IR, None to recognise it.

    Raises:
        UsageError: If the file cannot be read, or is no IR.
    """
    try:
        data = _read_bytes(name)
        text = data.decode("utf-8")
    except OSError as error:
        near = did_you_mean(name, map(str, _list_files(Path(name))))
        raise UsageError(
            f"{name}: cannot be read: {describe_os_error(error)}{near}; expected a file to compare"
        ) from None
    except (DecompressionError, UnicodeDecodeError) as error:
        raise UsageError(f"{name}: got no text ({error}), expected an IR") from None
    # A normal form names its kind in the head, which a wrong --kind must not override.
    if is_canonical(text):
        try:
            return IrText(text, read_head(text).kind)
        except IrSyntaxError as error:
            raise UsageError(f"{name}: {error}") from None
    detected = kind or detect_kind(text)
    if detected is None:
        raise UsageError(
            f"{name}: begins with {text[:40]!r}, expected HLO, StableHLO in the generic form, or a "
            f"jaxpr as runs keep it; if it is one, say so: --kind {'|'.join(PARSERS)}"
        )
    return IrText(text, detected)


def _read_bytes(name: str) -> bytes:
    # Bytes, not text: standard input may be compressed, too.
    data = sys.stdin.buffer.read() if name == STDIN else Path(name).read_bytes()
    return decompress(data) if data.startswith(_ZSTD) else data


def _list_files(path: Path) -> Iterator[Path]:
    if path.parent.is_dir():
        # For the suggestion in a message: a folder that does not exist suggests nothing.
        yield from (one for one in path.parent.iterdir() if one.is_file())


def is_file(name: str) -> bool:
    """Say whether a word names a text: a file, or standard input."""
    return name == STDIN or Path(name).is_file()


def is_cell_name(context: ProjectContext, name: str) -> bool:
    """Return whether a word names cells: a cell id, a release, a specifier or `path:`."""
    if is_cell_id(name) or name.startswith(PATH_PREFIX):
        return True
    try:
        return bool(resolve_selector(split_platform(name)[0], context.releases))
    except ConformanceError:
        # No release, an unknown platform or an index that does not answer: then it is no cell.
        return False


def describe_wrong_names(context: ProjectContext, names: Sequence[str], runs: Sequence[str]) -> str:
    """Return the message for names that are neither files, two runs nor two cells.

    Args:
        context: The project.
        names: The words on the command line.
        runs: The words that are names of runs.
    """
    if not names:
        return (
            "nothing to compare, expected two files, two runs, or two cells; "
            "conformance diff --help shows how"
        )
    if len(runs) == 1 and len(names) > 1:
        other = next(name for name in names if name not in runs)
        return f"{context.runs.describe_missing(other)}, to compare with {runs[0]}"
    if runs:
        return (
            f"{runs[0]} is one run, expected a second one; for cells of one run: "
            f"conformance diff A B --run {runs[0]}"
        )
    if Path(names[0]).is_dir():
        return context.runs.describe_missing(names[0])
    near = did_you_mean(names[0], [*context.runs.ids, *map(str, _list_files(Path(names[0])))])
    return (
        f"{names[0]}: no such file or run{near}; if it is a case, name the cells to compare: "
        f"conformance diff A B {names[0]}"
    )


def load_records(directory: RunDirectory) -> dict[tuple[str, str], Record]:
    """Return the records of a run by case and cell."""
    return {(record.case, record.cell): record for record in directory.read_records()}


def select_recorded_cases(
    selects: Sequence[str], records: Iterable[tuple[str, str]], where: str
) -> list[str]:
    """Return the cases selected that have a record.

    Args:
        selects: Families, case ids or globs; empty is every case.
        records: Case and cell of each record.
        where: The runs that have the records, for the message.

    Raises:
        NothingSelectedError: If a name matches no case; it suggests the nearest.
    """
    # A dictionary instead of a set: cases stay in the order of the run.
    known = list(dict.fromkeys(case for case, _ in records))
    chosen: dict[str, None] = {}
    for select in selects:
        found = [case for case in known if _matches(select, case)]
        if not found:
            near = did_you_mean(select, [*known, *{case.partition("/")[0] for case in known}])
            raise NothingSelectedError(
                f"{where}: no record of {select}{near}, expected a family, a case id or a glob of "
                "what was run"
            )
        chosen.update(dict.fromkeys(found))
    # In the order of the run, not of the selects, so that reports of one run have one order.
    return [case for case in known if case in chosen] if selects else known


def _matches(select: str, case: str) -> bool:
    """Return whether a SELECT means a case, by the rules of `conformance run`."""
    family, plain = case.partition("/")[0], case.partition("[")[0]
    # Brackets are part of ids, so they are no character class in a glob.
    pattern = select.replace("[", "[[]")
    return select in {family, plain, case} or any(fnmatchcase(x, pattern) for x in (case, plain))


def select_recorded_cells(
    context: ProjectContext,
    directory: RunDirectory,
    selectors: Sequence[str],
    *,
    strict: bool = True,
) -> list[str]:
    """Return the cells of a run that selectors name, in their order.

    Args:
        context: The project.
        directory: The run.
        selectors: Cell ids, releases or specifiers.
        strict: Whether a selector that names none is an error.

    Raises:
        UsageError: If a selector names no cell, or is none.
    """
    cells = directory.read_run().cells
    known = [cell.id for cell in cells]
    chosen: dict[str, None] = {}
    for text in selectors:
        # An id may leave out its Python and its platform, which records spell out.
        named = parse_cell(text, context.releases).id if is_cell_id(text) else text
        found = [cell.id for cell in cells if named in {cell.id, cell.selector}]
        if not found and not is_cell_id(text):
            matching = [cell for cell in cells if _matches_cell(text, cell, context)]
            # A release means its plain cell: an environment of that release only if it has none.
            plain = [cell for cell in matching if not cell.selector.startswith(PATH_PREFIX)]
            found = [cell.id for cell in plain or matching]
        if strict and not found:
            raise UsageError(describe_missing_cell(text, directory.id, known))
        chosen.update(dict.fromkeys(found))
    return list(chosen)


def _matches_cell(text: str, cell: RunCell, context: ProjectContext) -> bool:
    """Return whether a selector means a cell of a run."""
    selector, place = split_platform(text)
    release = cell.release
    own: dict[str, Any] = {}
    if cell.selector.startswith(PATH_PREFIX):
        # The id of such a cell is a hash of its path: only its selector has the platform.
        path, own = split_platform(cell.selector)
        release = path if selector.strip().startswith(PATH_PREFIX) else release
    elif place and is_cell_id(cell.id):
        parsed = parse_cell(cell.id, context.releases)
        own = {name: getattr(parsed, name) for name in place}
    here = all(own.get(name) == value for name, value in place.items())
    return bool(release) and here and matches_selector(selector, release, context.releases)


def describe_missing_cell(selector: str, where: str, known: Iterable[str]) -> str:
    """Return the message for a selector that names no cell."""
    return f"--cell {selector}: no such cell in {where}, expected one of {', '.join(sorted(known))}"
