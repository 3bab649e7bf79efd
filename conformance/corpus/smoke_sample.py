"""The sample of a project's cases that a run without arguments takes: `smoke.toml` beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from conformance.corpus.case_selection import matches
from conformance.errors import UsageError
from conformance.files import MALFORMED, said_by

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from conformance.model.case import Case

FILE_NAME: Final = "smoke.toml"


class _Sample(msgspec.Struct, forbid_unknown_fields=True):
    """The file: names of families, cases or globs, as SELECT takes them."""

    select: list[str]


def select_sample(cases: Iterable[Case], folder: Path) -> tuple[Case, ...]:
    """Return the sample of some cases; all of them where the project declares none.

    Args:
        cases: The cases.
        folder: Folder of the project's families. Cases from elsewhere are in every sample.

    Raises:
        UsageError: If the file cannot be read, or a name in it matches no case.
    """
    file = folder / FILE_NAME
    cases = tuple(cases)
    names = _read(file)
    if names is None:
        return cases
    own = {case.id: case for case in cases if case.file.is_relative_to(folder)}
    sample: set[str] = set()
    for name in names:
        found = {case.id for case in own.values() if matches(case, name)}
        if own and not found:
            raise UsageError(f"{file}: no case matches {name}, expected a family, an id or a glob")
        sample |= found
    return tuple(case for case in cases if case.id in sample or case.id not in own)


def _read(file: Path) -> list[str] | None:
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {said_by(error)}") from None
    try:
        return msgspec.toml.decode(content, type=_Sample).select
    except MALFORMED as error:
        raise UsageError(
            f"{file}: {error}; expected select = [...], names of families or cases"
        ) from None
