"""Facts shared by records with equal programs."""

from __future__ import annotations

import pytest

from conformance.model.outcome import Outcome, Stage
from conformance.model.record import FactInterner, IrRecord, Record


def stating(peak: int, exact: str = "a", memory: str = "m", layout: str = "l") -> Record:
    """Return a record of a job with such an HLO, analysis of its memory, and layout."""
    return Record(
        case="f/a", cell="cell", case_hash="", cell_hash="", outcome=Outcome.OK,
        stage=Stage.EXECUTE, ir={"hlo": IrRecord(exact=exact)},
        artifacts={"memory": memory, "layout": layout}, facts={"peak_bytes": peak},
    )  # fmt: skip


def test_equal_programs_with_equal_analyses_share_facts() -> None:
    """One object is kept."""
    shared = FactInterner()
    first = shared.intern(stating(1))
    assert shared.intern(stating(1)) is first


@pytest.mark.parametrize("other", [{"memory": "n"}, {"layout": "k"}, {"exact": "b"}, {"exact": ""}])
def test_another_program_or_analysis_has_its_own_facts(other: dict[str, str]) -> None:
    """The same instructions may need another memory; what was not understood is like nothing."""
    shared = FactInterner()
    shared.intern(stating(1))
    assert shared.intern(stating(2, **other)) == {"peak_bytes": 2}


def test_equal_forms_with_other_counts_keep_their_facts() -> None:
    """The exact form of an HLO does not determine how often it has an operation."""
    shared = FactInterner()
    shared.intern(stating(1))
    assert shared.intern(stating(2)) == {"peak_bytes": 2}
