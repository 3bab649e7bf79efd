"""All that is kept of one text."""

from __future__ import annotations

import pytest

from conformance.ir.analysis import analyse
from conformance.ir.graph import IrSyntaxError
from conformance.ir.normal.text import head_of, loads
from tests.ir.texts import LOOP, STEPS, hlo, neutral, structure

TEXT = hlo(*LOOP, before=STEPS)


def test_an_analysis_holds_both_fingerprints_and_the_facts() -> None:
    """The facts are those of the structure, before anything is folded."""
    found = analyse(TEXT, "hlo")
    assert (found.structure, found.neutral) == (structure(TEXT), neutral(TEXT))
    assert found.facts["ops"]["get-tuple-element"] == 5
    assert (found.text, found.not_understood) == ("", {})


def test_the_text_is_there_if_asked_for() -> None:
    """With the fingerprint in its first line."""
    found = analyse(TEXT, "hlo", with_text=True)
    assert head_of(found.text).fingerprint == found.neutral
    assert loads(found.text).kind == "hlo"


def test_what_is_not_understood_is_an_error() -> None:
    """That names the line."""
    with pytest.raises(IrSyntaxError, match="hlo line"):
        analyse(TEXT.replace("multiply(", "multiply["), "hlo")
