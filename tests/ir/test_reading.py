"""What kind a text is, and who reads it."""

from __future__ import annotations

import pytest

from conformance.ir.graph import IrSyntaxError
from conformance.ir.reading import kind_of, read
from tests.ir.jaxpr.documents import document, eqn, jaxpr
from tests.ir.texts import hlo, stablehlo

TEXTS = {
    "hlo": hlo("%r = f32[4] negate(%x)"),
    "stablehlo": stablehlo('%r = "stablehlo.negate"(%x) : (tensor<4xf32>) -> tensor<4xf32>'),
    "jaxpr": document(jaxpr(eqn("neg", [0]), out=(1,))),
}


@pytest.mark.parametrize("kind", TEXTS)
def test_a_text_shows_its_kind(kind: str) -> None:
    """Whatever stands before it."""
    assert kind_of(f"\n  {TEXTS[kind]}") == kind
    assert read(TEXTS[kind], kind).kind == kind


@pytest.mark.parametrize("text", ["", "hello", "define i32 @main()"])
def test_other_texts_show_none(text: str) -> None:
    """And are an error for whoever reads them."""
    assert kind_of(text) is None
    with pytest.raises(IrSyntaxError):
        read(text, "hlo")


def test_an_unknown_kind_is_an_error() -> None:
    """That names those that are known."""
    with pytest.raises(IrSyntaxError, match="kind 'llvm', expected one of hlo, stablehlo, jaxpr"):
        read(TEXTS["hlo"], "llvm")


def test_a_text_of_another_kind_is_an_error() -> None:
    """That says what it looks like."""
    with pytest.raises(IrSyntaxError, match="hlo line 1: got what looks like jaxpr, expected hlo"):
        read(TEXTS["jaxpr"], "hlo")
