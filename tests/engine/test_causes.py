"""Root causes: what makes unexpected jobs one cause, and what does not."""

from __future__ import annotations

import pytest

from conformance.engine.causes import root_causes
from conformance.model.outcome import Verdict
from conformance.model.record import ErrorInfo
from tests.engine.records import record


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (("f/a", "raised E: m", "E: m"), ("g/b", "raised E: m", "E: m"), True),
        (("f/a", "raised E: m", "E: m"), ("f/a", "raised E: n", "E: n"), False),
        (("f/a[x]", "out 3 of 4 differ", ""), ("f/a[y]", "out 9 of 16 differ", ""), True),
        (("f/a", "out 3 of 4 differ", ""), ("g/b", "out 3 of 4 differ", ""), False),
        (("f/a", "fact donation: 1 gone", ""), ("g/b", "fact donation: 1 gone", ""), True),
        (("f/a", "fact loops: 1, golden 2", ""), ("g/b", "fact loops: 1, golden 3", ""), False),
        (("f/a", "fact x: y; if intended: conformance accept f/a", ""),
         ("g/b", "fact x: y; if intended: conformance accept g/b", ""), True),
    ],
)  # fmt: skip
def test_what_is_one_cause(
    one: tuple[str, str, str], other: tuple[str, str, str], same: bool
) -> None:
    """An error or a fact in whatever case; of values, what one function computes."""
    records = [
        record(case, "c", Verdict.REGRESSED, reason,
               error=ErrorInfo(type="E", message="", signature=said) if said else None)
        for case, reason, said in (one, other)
    ]  # fmt: skip
    assert len(root_causes(records)) == (1 if same else 2)


def test_causes_are_grouped_largest_first() -> None:
    """The same reason of the same case is one cause; infrastructure is one for all its cases."""
    records = [
        record("f/a", "c1", Verdict.REGRESSED, "dtype"),
        record("f/b", "c1", Verdict.INFRA, "no network"),
        record("f/a", "c1", Verdict.MATCH),
        record("f/c", "c1", Verdict.INFRA, "no network"),
        record("f/a", "c2", Verdict.REGRESSED, "value"),
    ]
    found = [(one.reason, [r.case for r in one.records]) for one in root_causes(records)]
    assert found == [("no network", ["f/b", "f/c"]), ("dtype", ["f/a"]), ("value", ["f/a"])]


def test_a_cause_has_the_same_id_every_night() -> None:
    """However many jobs show it, and whichever comes first."""
    (one,) = root_causes([record("f/a[x]", "c", Verdict.REGRESSED, "out 3 of 4 differ")])
    (other,) = root_causes(
        record(case, cell, Verdict.REGRESSED, "out 9 of 16 differ")
        for case in ("f/a[y]", "f/a[x]")
        for cell in ("d", "c")
    )
    assert one.id == other.id
    assert (len(one.records), len(other.records)) == (1, 4)
