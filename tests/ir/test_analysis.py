"""Parsing texts of any kind, and their fingerprints and facts."""

from __future__ import annotations

import pytest

from conformance.ir.analysis import analyse, detect_kind, parse_ir
from conformance.ir.graph import IrSyntaxError
from conformance.ir.normal.text import loads, read_head
from tests.ir.jaxpr.documents import document, eqn, jaxpr
from tests.ir.texts import LOOP, STEPS, hlo, neutral, stablehlo, structure

TEXT = hlo(*LOOP, before=STEPS)


def test_an_analysis_holds_both_fingerprints_and_the_facts() -> None:
    """The facts are those of the structure, before anything is folded."""
    found = analyse(TEXT, "hlo")
    assert (found.exact, found.canonical) == (structure(TEXT), neutral(TEXT))
    assert found.facts["ops"]["get-tuple-element"] == 5
    assert (found.text, found.not_understood) == ("", {})


def test_the_canonical_text_is_optional() -> None:
    """Its first line has the fingerprint."""
    found = analyse(TEXT, "hlo", with_text=True)
    assert read_head(found.text).fingerprint == found.canonical
    assert loads(found.text).kind == "hlo"


def test_a_malformed_ir_is_an_error() -> None:
    """The message names the line."""
    with pytest.raises(IrSyntaxError, match="hlo line"):
        analyse(TEXT.replace("multiply(", "multiply["), "hlo")


TEXTS = {
    "hlo": hlo("%r = f32[4] negate(%x)"),
    "stablehlo": stablehlo('%r = "stablehlo.negate"(%x) : (tensor<4xf32>) -> tensor<4xf32>'),
    "jaxpr": document(jaxpr(eqn("neg", [0]), out=(1,))),
}


@pytest.mark.parametrize("kind", TEXTS)
def test_the_kind_of_a_text_is_detected(kind: str) -> None:
    """After leading blanks."""
    assert detect_kind(f"\n  {TEXTS[kind]}") == kind
    assert parse_ir(TEXTS[kind], kind).kind == kind


@pytest.mark.parametrize("text", ["", "hello", "define i32 @main()"])
def test_other_texts_have_no_kind(text: str) -> None:
    """And parsing them is an error."""
    assert detect_kind(text) is None
    with pytest.raises(IrSyntaxError):
        parse_ir(text, "hlo")


def test_an_unknown_kind_is_an_error() -> None:
    """The message names the known kinds."""
    with pytest.raises(IrSyntaxError, match="kind 'llvm', expected one of hlo, stablehlo, jaxpr"):
        parse_ir(TEXTS["hlo"], "llvm")


def test_a_text_of_another_kind_is_an_error() -> None:
    """The message names the detected kind."""
    with pytest.raises(
        IrSyntaxError, match="hlo line 1: got a text that begins like jaxpr, expected hlo"
    ):
        parse_ir(TEXTS["jaxpr"], "hlo")
