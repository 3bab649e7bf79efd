"""What is pending, and what of it is one change."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.engine.runs.root_causes import find_root_causes
from conformance.model.outcome import Conformance, Outcome, Verdict
from conformance.model.record import IrRecord, IrStatus
from conformance.review.groups import GroupKind, count_verdicts, group_changes

from .members import member

ADDED, GONE = ("semantic: add added",), ("semantic: mul removed",)
NEW = "no golden yet: conformance accept "


def changed(**lines: tuple[str, ...]) -> dict[str, IrRecord]:
    """Return IRs that changed, by how."""
    return {ir: IrRecord(status=IrStatus.CHANGED, changes=found) for ir, found in lines.items()}


def test_the_same_difference_is_one_group() -> None:
    """In whatever case and cell; its id is that of the root cause, every night."""
    jobs = [
        member("fam/a", "0.6.0", Verdict.REGRESSED, "raised E: m", error="E: m"),
        member("fam/a", "0.6.2", Verdict.REGRESSED, "raised E: m", error="E: m"),
        member("other/b", "0.6.2", Verdict.REGRESSED, "raised E: m", error="E: m"),
        member("other/b", "0.6.0", Verdict.MATCH),
    ]
    (group,) = group_changes(jobs)
    assert (group.size, group.kind, group.cases) == ("2 cells / 2 cases", GroupKind.UNEXPECTED, (
        "fam/a", "other/b",
    ))  # fmt: skip
    (cause,) = find_root_causes(job.record for job in jobs)
    assert group.id == cause.id


@pytest.mark.parametrize("verdict", [Verdict.MATCH, Verdict.KNOWN, Verdict.DRIFTED])
def test_expected_results_are_not_pending(verdict: Verdict) -> None:
    """Nor are excluded jobs and faults of the host."""
    left_out = member("fam/x", verdict=Verdict.EXCLUDED, outcome=Outcome.UNSUPPORTED)
    broken = member("fam/y", verdict=Verdict.INFRA, outcome=Outcome.INFRA)
    assert group_changes([member(verdict=verdict), left_out, broken]) == ()


def test_a_golden_that_cannot_be_read_is_pending() -> None:
    """Accepting puts it right."""
    (group,) = group_changes([member("fam/a", "0.6.0", Verdict.INFRA, "x.toml: no TOML")])
    assert (group.title, group.members[0].refusal) == ("x.toml: no TOML", "")


def test_new_results_are_grouped_by_file() -> None:
    """Those without a reference are separate; failures are grouped like any other."""
    jobs = [
        member("fam/a", "0.6.0", Verdict.NEW, f"{NEW}fam/a"),
        member("fam/b[x]", "0.6.2", Verdict.NEW, f"{NEW}fam/b[x]"),
        member("fam/c", verdict=Verdict.NEW, conforms=Conformance.UNKNOWN),
        member("fam/d", "0.6.0", Verdict.NEW, "raised E: m", conforms=Conformance.UNKNOWN,
               error="E: m"),
    ]  # fmt: skip
    assert [(g.title, len(g.members)) for g in group_changes(jobs)] == [
        ("raised E: m", 1),
        ("no golden yet: fam/topic, conforms to its references", 2),
        ("no golden yet: fam/topic, no reference vouches for it", 1),
    ]


@pytest.mark.parametrize(
    ("irs", "title"),
    [
        (changed(jaxpr=ADDED), "jaxpr: semantic: add added"),
        (changed(hlo=GONE, stablehlo=(*ADDED, *GONE)), "stablehlo: semantic: add added and 1 more"),
        (changed(stablehlo=GONE, jaxpr=ADDED), "jaxpr: semantic: add added"),
    ],
)
def test_an_ir_that_warns_is_pending(irs: dict[str, IrRecord], title: str) -> None:
    """Once, by the first IR that changed: the later ones are made of it."""
    (group,) = group_changes([member("fam/a", "0.6.0", Verdict.MATCH, ir=irs)])
    assert (group.title, group.kind) == (title, GroupKind.IR)


def test_an_ir_that_only_informs_is_not_pending() -> None:
    """The optimised HLO changes with every compiler."""
    assert group_changes([member(verdict=Verdict.MATCH, ir=changed(hlo=ADDED))]) == ()


def test_one_change_is_counted_once() -> None:
    """A job whose value changed is not pending for its IR too."""
    both = member("fam/a", "0.6.0", Verdict.CHANGED, "fact x: y", ir=changed(jaxpr=ADDED))
    ir_alone = member("fam/b", "0.6.0", Verdict.MATCH, ir=changed(jaxpr=ADDED))
    found = group_changes([both, ir_alone])
    assert [[m.record.case for m in group.members] for group in found] == [["fam/a"], ["fam/b"]]
    assert count_verdicts(found) == "1 changed, 1 IR changed"


def test_ids_do_not_depend_on_what_else_is_pending() -> None:
    """Nor on the order or the number of jobs."""
    irs: dict[str, Any] = {"ir": changed(jaxpr=ADDED)}
    jobs = [
        member("fam/a", "0.6.0", Verdict.MATCH, **irs),
        member("fam/b", "0.6.2", Verdict.MATCH, **irs),
        member("fam/c", "0.6.0", Verdict.NEW, f"{NEW}fam/c"),
    ]
    one = {group.title: group.id for group in group_changes(jobs)}
    other = {group.title: group.id for group in group_changes(reversed(jobs[1:]))}
    assert one == other


def test_only_unexpected_results_of_a_nightly_are_pending() -> None:
    """An IR that warns, and what is new and conforms, would wait for goldens that never come."""
    night = "0.7.1.dev20261122"
    jobs = [
        member("fam/a", night, Verdict.MATCH, ir=changed(jaxpr=ADDED)),
        member("fam/b", night, Verdict.NEW, f"{NEW}fam/b"),
        member("fam/c", night, Verdict.NEW, f"{NEW}fam/c", conforms=Conformance.UNKNOWN),
        member("fam/d", night, Verdict.CHANGED, "fact x: y"),
    ]
    assert [group.cases for group in group_changes(jobs)] == [("fam/d",), ("fam/c",)]


def test_a_traceback_is_no_part_of_the_key_of_a_job() -> None:
    """An edit moves its lines, and another host its paths."""
    one, other = (
        member(error="E: m", artifacts={"value": "v", "traceback": text, "frames": text})
        for text in ("1", "2")
    )
    assert one.key == other.key
    assert one.key != member(error="E: m", artifacts={"value": "w"}).key
