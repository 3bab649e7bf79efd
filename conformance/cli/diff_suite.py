"""What `conformance diff` says of tests of suites: what became of each, by root cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from conformance.engine.suite_changes import changed
from conformance.errors import NothingSelectedError
from conformance.files import readable_json
from conformance.report.suite_diff import diff_json, diff_lines

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from conformance.engine.suite_changes import Changed
    from conformance.model.record import Record
    from conformance.model.run import RunInfo

    Key = tuple[str, str]


def is_of_tests(info: RunInfo, cases: Collection[str]) -> bool:
    """Say whether cases of a run are tests of a suite.

    Args:
        info: The run.
        cases: Ids of cases; those that it does not know do not count.
    """
    kinds = {info.cases[case].kind for case in cases if case in info.cases}
    return kinds == {"test"}


def within(
    records: Mapping[Key, Record], cases: Sequence[str], base: str, others: Sequence[str]
) -> list[Changed]:
    """Return what became of tests from one cell of a run to others.

    Args:
        records: Records of the run, by case and cell.
        cases: The tests.
        base: The one cell.
        others: The others.

    Raises:
        NothingSelectedError: If one side has no test.
    """
    _refuse_nothing([cell for _, cell in records], base, *others)
    return [
        changed(case, *pair, silent=None in pair)
        for case in cases
        for other in others
        if any(pair := (records.get((case, base)), records.get((case, other))))
    ]


def between(
    infos: tuple[RunInfo, RunInfo],
    records: tuple[Mapping[Key, Record], Mapping[Key, Record]],
    keys: Sequence[Key],
) -> list[Changed]:
    """Return what became of tests from one run to another.

    Args:
        infos: Both runs.
        records: Records of each, by case and cell.
        keys: Case and cell of what is compared.
    """
    whole = [_has_whole(info) for info in infos]
    planned = [frozenset(info.plan) for info in infos]
    found = []
    for key in keys:
        pair = records[0].get(key), records[1].get(key)
        # A test is gone where the suite was run whole without it, and nowhere else.
        silent = any(
            one is None and (not whole[side] or key in planned[side])
            for side, one in enumerate(pair)
        )
        found.append(changed(key[0], *pair, silent=silent))
    return found


def tell(changes: Sequence[Changed], names: tuple[str, str], *, json: bool, every: bool) -> int:
    """Print what became of tests, and return the exit status.

    Args:
        changes: What became of each.
        names: What both sides are called.
        json: Whether as JSON.
        every: Whether every test is named.
    """
    if json:
        click.echo(readable_json(diff_json(changes, names)))
    else:
        for line in diff_lines(changes, names, every=every):
            click.echo(line)
    return int(any(one.change.counts for one in changes))


def _has_whole(info: RunInfo) -> bool:
    return info.suite is not None and info.suite.complete


def _refuse_nothing(known: Collection[str], *cells: str) -> None:
    for cell in cells:
        if cell not in known:
            raise NothingSelectedError(f"{cell}: no test was run there, expected one to compare")
