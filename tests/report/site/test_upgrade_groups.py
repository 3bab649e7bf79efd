"""Groups of an upgrade's page: one cause told once, with what each of its cases did."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from conformance.report.site.upgrade_groups import AT_ONCE, make_groups
from conformance.triage.upgrade.effect import Effect
from tests.builders import f32
from tests.report.raising import RAISED as TRACED
from tests.report.upgrades import AXIS, OK, OTHER, RAISED, WRONG, Tried

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.report.report import Report
    from conformance.report.site.evidence import Row
    from conformance.report.site.upgrade_groups import UpgradeGroupView


def groups(report: Report) -> list[UpgradeGroupView]:
    """Return the groups of the only upgrade."""
    return [*make_groups(report, report.runs[0].id)]


def texts(rows: tuple[Row, ...]) -> list[tuple[str, ...]]:
    """Return what rows say, without marks."""
    return [
        tuple("" if side is None else "".join(run.text for run in side) for side in row)
        for row in rows
    ]


def test_cases_of_one_cause_are_one_group(tmp_path: Path) -> None:
    """With each case at its place, and where its page tells of the change."""
    tried = Tried(tmp_path).case("f/a", OK, OK, RAISED, RAISED).case("f/b", OK, OK, RAISED, RAISED)
    (group,) = groups(tried.report())
    assert (group.anchor, group.since, group.count) == ("broken-1", "since 0.6.1", 2)
    assert (group.before, group.after) == ("0.6.0", "0.6.1")
    assert texts(group.rows) == [("ok", "ValueError: bad shape")]
    assert [one.case for one in group.platforms[0].members] == ["f/a", "f/b"]
    assert group.platforms[0].members[0].address == "cases/f/a.html#cpu8@0.6.1"
    assert group.change.beside == {"numpy": ("2.2.0", "2.3.0")}


def test_messages_are_shown_in_full(tmp_path: Path) -> None:
    """All of its lines, the first of them at once."""
    lines = [f"line {n} {'x' * 200}" for n in range(9)]
    long = {"error": ("ValueError", "\n".join(lines))}
    (group,) = groups(Tried(tmp_path).case("f/a", OK, OK, long, long).report())
    said = [after for _, after in texts((*group.rows, *group.more))]
    assert said == [f"ValueError: {lines[0]}", *lines[1:]]
    assert len(group.rows) == AT_ONCE


def test_words_that_differ_are_marked(tmp_path: Path) -> None:
    """Where both sides say nearly the same; not where all of it is another thing."""
    (group,) = groups(Tried(tmp_path).case("f/a", RAISED, RAISED, OTHER, OTHER).report())
    ((before, after),) = group.rows
    assert before is not None
    assert after is not None
    assert "".join(run.text for run in after if run.differs).strip() == "|"
    (group,) = groups(Tried(tmp_path / "b").case("f/a", OK, OK, RAISED, RAISED).report())
    assert not any(run.differs for row in group.rows for side in row for run in side or ())


def test_members_show_only_their_own_sides(tmp_path: Path) -> None:
    """How wrong it is, where the group's example is another; and what else changed on the way."""
    worse = {**WRONG, "value": f32(1, 9)}
    tried = Tried(tmp_path).case("f/a", OK, OK, WRONG, WRONG).case("f/b", OK, RAISED, worse, worse)
    tried.case("f/c", OK, OK, worse, worse)
    first, last = groups(tried.report())
    assert texts(first.rows) == [("out[1] = 2.0", "out[1] = 3.0")]
    assert [(m.case, m.before, m.after) for m in first.platforms[0].members] == [
        ("f/a", "", ""), ("f/c", "", "out[1] = 9.0"),
    ]  # fmt: skip
    assert last.platforms[0].members[0].also == "broken in 0.6.0"


def test_large_numbers_have_separators(tmp_path: Path) -> None:
    """They have a name, and thousands are set apart; for each case its own."""
    made = [{**OK, "facts": {"peak_bytes": float(n)}} for n in (1_000, 5_000_000, 7_000_000)]
    tried = Tried(tmp_path).case("f/a", made[0], made[0], made[1], made[1])
    (group,) = groups(tried.case("f/b", made[0], made[0], made[2], made[2]).report())
    assert (group.what, texts(group.rows)) == (
        "bytes of memory at the peak", [("1,000", "5,000,000")],
    )  # fmt: skip
    assert group.platforms[0].members[1].after == "7,000,000"


def test_a_release_that_could_not_be_tried_leaves_a_gap(tmp_path: Path) -> None:
    """Both sides of the change are named."""
    (group,) = groups(Tried(tmp_path).case("f/a", OK, None, RAISED, RAISED).report())
    assert group.since == "after 0.5.3, by 0.6.1"


def test_changes_that_were_reverted_are_in_unchanged(tmp_path: Path) -> None:
    """It is told as what it did there."""
    (group,) = groups(Tried(tmp_path).case("f/a", OK, RAISED, OK, OK).report())
    assert (group.effect, group.kind, group.since) == (
        Effect.UNCHANGED, "fixed", "in 0.6.1",
    )  # fmt: skip


def test_further_cases_are_folded(tmp_path: Path) -> None:
    """A few are shown at once."""
    tried = Tried(tmp_path)
    for number in range(AT_ONCE + 2):
        tried.case(f"f/{number}", OK, OK, RAISED, RAISED)
    (group,) = groups(tried.report())
    (rows,) = group.platforms
    assert (len(rows.members), len(rows.more), group.count) == (AT_ONCE, 2, AT_ONCE + 2)


def test_platforms_have_an_axis_each(tmp_path: Path) -> None:
    """The same change on two of them is one group with two pictures."""
    cells = tuple(replace(planned, cell=replace(planned.cell, devices=4)) for planned in AXIS.cells)
    four = replace(AXIS, platform="cpu4", cells=cells)
    tried = Tried(tmp_path).case("f/a", OK, OK, RAISED, RAISED)
    tried.case("f/a", OK, OK, RAISED, RAISED, axis=four)
    (group,) = groups(tried.report())
    assert group.count == 1
    assert [(rows.platform, len(rows.members)) for rows in group.platforms] == [
        ("cpu8", 1), ("cpu4", 1),
    ]  # fmt: skip
    assert group.platforms[1].members[0].address == "cases/f/a.html#cpu4@0.6.1"


def test_missing_jobs_are_blank(tmp_path: Path) -> None:
    """A run whose results were cut still tells what was found."""
    tried = Tried(tmp_path).case("f/a", OK, OK, RAISED, RAISED).case("f/b", OK, OK, OK, OK)
    tried.made.records = [one for one in tried.made.records if one.case == "f/b"]
    (group,) = groups(tried.report())
    (member,) = group.platforms[0].members
    assert (member.address, [part.fill for part in member.strip]) == ("", [""])
    assert texts(group.rows) == [("ok", "ValueError: bad shape")]


def test_a_group_has_the_traceback_of_its_first_job(tmp_path: Path) -> None:
    """On the side that raised; a value that changed has none."""
    (broken,) = groups(Tried(tmp_path / "a").case("f/a", OK, OK, TRACED, TRACED).report())
    assert (broken.raised_on, len(broken.stacks)) == ("0.6.1", 2)
    (fixed,) = groups(Tried(tmp_path / "b").case("f/a", TRACED, OK, OK, OK).report())
    assert (fixed.raised_on, len(fixed.stacks)) == ("0.5.3", 2)
    other = {"value": f32(9, 9)}
    (changed,) = groups(Tried(tmp_path / "c").case("f/a", OK, other, other, other).report())
    assert changed.stacks == ()
