"""The IRs of a job in their normal forms, including those for other platforms."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from conformance.engine import ir_analysis
from conformance.engine.ir_analysis import analyse_artifacts
from conformance.ir.analysis import Analysis, analyse
from tests.ir.texts import stablehlo

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest

SINE = stablehlo('%r = "stablehlo.sine"(%x) : (tensor<4xf32>) -> tensor<4xf32>').encode()
COSINE = SINE.replace(b"sine", b"cosine")


def test_each_platform_has_a_record() -> None:
    """By the artifact's name, in the normal forms of StableHLO."""
    found, facts = analyse_artifacts(
        {"stablehlo": SINE, "stablehlo-tpu": COSINE, "stablehlo-cuda": SINE}
    )
    assert list(found) == ["stablehlo", "stablehlo-tpu", "stablehlo-cuda"]
    assert found["stablehlo-tpu"].canonical == analyse(COSINE.decode(), "stablehlo").canonical
    assert found["stablehlo-cuda"] == found["stablehlo"] != found["stablehlo-tpu"]
    assert facts == {}  # those of a program are stated by its own optimised HLO


def test_the_same_text_is_analysed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most programs are lowered to the same text for every platform."""
    kinds = []

    def counted(text: str, kind: str) -> Analysis:
        kinds.append(kind)
        return analyse(text, kind)

    monkeypatch.setattr(ir_analysis, "analyse", counted)
    names = ("stablehlo", "stablehlo-tpu", "stablehlo-cuda", "stablehlo-rocm")
    texts: Mapping[str, bytes] = dict.fromkeys(names, SINE)
    assert len(analyse_artifacts(texts)[0]) == len(names)
    assert kinds == ["stablehlo"]


HLO = b"""\
HloModule jit_f, entry_computation_layout={(f32[2]{0}, f32[])->f32[2]{0}}, num_partitions=4

ENTRY %main (a: f32[2], b: f32[]) -> f32[2] {
  %a = f32[2]{0} parameter(0)SHARDING
  %b = f32[] parameter(1)
  ROOT %r = f32[2]{0} negate(%a)
}
"""
LAYOUT = {
    "inputs": ["0:0:2", None, "0:"],
    "outputs": ["0:0:2"],
    "input_hlo": ["{devices=[4]<=[4]}", None, "{replicated}"],
    "output_hlo": ["{devices=[4]<=[4]}"],
}


def test_shardings_of_the_compiled_object_are_facts() -> None:
    """If the HLO has none; an unused input is no parameter."""
    silent = HLO.replace(b"SHARDING", b"")
    _, facts = analyse_artifacts({"hlo": silent, "layout": json.dumps(LAYOUT).encode()})
    assert facts["parameters"] == [
        {"type": "f32[2]", "sharding": "tiled [4] over 0,1,2,3"},
        {"type": "f32[]", "sharding": "replicated"},
    ]
    assert facts["results"] == [{"type": "f32[2]", "sharding": "tiled [4] over 0,1,2,3"}]


def test_shardings_in_the_hlo_take_precedence() -> None:
    """An unreadable sharding of the compiled object adds no fact."""
    stating = HLO.replace(b"SHARDING", b", sharding={replicated}")
    _, facts = analyse_artifacts({"hlo": stating, "layout": json.dumps(LAYOUT).encode()})
    assert facts["parameters"] == [{"type": "f32[2]", "sharding": "replicated"}, {"type": "f32[]"}]
    odd = {**LAYOUT, "output_hlo": ["{of its own kind}"], "input_hlo": []}
    _, facts = analyse_artifacts(
        {"hlo": HLO.replace(b"SHARDING", b""), "layout": json.dumps(odd).encode()}
    )
    assert facts["results"] == [{"type": "f32[2]"}]
    assert facts["parameters"] == [{"type": "f32[2]"}, {"type": "f32[]"}]


def test_an_ir_that_is_not_understood_is_recorded() -> None:
    """The other platforms are unaffected."""
    found, _ = analyse_artifacts({"stablehlo": SINE, "stablehlo-tpu": b'"builtin.module"( ?'})
    assert found["stablehlo"].canonical
    assert not found["stablehlo-tpu"].canonical
    assert "stablehlo" in next(iter(found["stablehlo-tpu"].not_understood))
