"""Goldens of StableHLO for other platforms: a word where it is the cell's own, else a text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.engine.ir_analysis import analyse_artifacts
from conformance.golden.accept import apply, plan_accept
from conformance.golden.accept_plan import AcceptEffect, AcceptPlan, Candidate
from conformance.golden.document import GoldenError
from conformance.golden.store import GoldenStore
from conformance.ir.analysis import analyse
from conformance.judge.ir import compare_ir
from conformance.model.record import IrStatus
from tests.builders import case, f32, ok
from tests.ir.texts import stablehlo

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.model.golden import GoldenIr

KNOWN = ["0.5.0", "0.5.3", "0.6.0", "0.7.0"]
CASE = case()
FOLDER = "family/golden/topic/name"
SINE, COSINE, TANH = (
    stablehlo(f'%r = "stablehlo.{op}"(%x) : (tensor<4xf32>) -> tensor<4xf32>')
    for op in ("sine", "cosine", "tanh")
)


def _accept(root: Path, release: str, own: str, **platforms: str) -> AcceptPlan:
    texts = {"stablehlo": own, **{f"stablehlo-{name}": text for name, text in platforms.items()}}
    irs, _ = analyse_artifacts({name: text.encode() for name, text in texts.items()})
    candidate = Candidate(
        case=CASE,
        variant="cpu",
        release=release,
        observation=ok(f32(1), ir=irs),
        text=lambda ir: analyse(texts[ir], "stablehlo", with_text=True).text,
    )
    plan = plan_accept(GoldenStore(root), [candidate], KNOWN)
    apply(plan, env={})
    return plan


def _golden(root: Path, release: str) -> dict[str, GoldenIr]:
    found = GoldenStore(root).lookup(CASE, "cpu", release)
    assert found is not None
    return dict(found.ir)


def _toml(root: Path) -> str:
    return (root / FOLDER / "spans.toml").read_text()


def test_equal_stablehlo_is_recorded_as_a_reference(tmp_path: Path) -> None:
    """In one span, even if the program changed between its releases."""
    for release, text in zip(KNOWN, (SINE, SINE, COSINE, TANH), strict=True):
        _accept(tmp_path, release, text, tpu=text, cuda=text)
    assert '[cpu.stablehlo-tpu]\n"0.5.0..0.7.0" = "stablehlo"\n' in _toml(tmp_path)
    assert "stablehlo-tpu-exact" not in _toml(tmp_path)
    assert len(list((tmp_path / FOLDER).glob("stablehlo*"))) == 3
    for release, text in zip(KNOWN, (SINE, SINE, COSINE, TANH), strict=True):
        golden = _golden(tmp_path, release)["stablehlo-cuda"]
        assert golden.canonical == analyse(text, "stablehlo").canonical
        assert golden.text == _golden(tmp_path, release)["stablehlo"].text


def test_different_stablehlo_is_recorded_as_text(tmp_path: Path) -> None:
    """Platforms with equal texts share the file."""
    _accept(tmp_path, "0.5.0", SINE, tpu=SINE, cuda=SINE)
    _accept(tmp_path, "0.6.0", SINE, tpu=COSINE, cuda=COSINE)
    _accept(tmp_path, "0.7.0", COSINE, tpu=COSINE, cuda=TANH)
    golden = _golden(tmp_path, "0.6.0")
    assert golden["stablehlo-tpu"] == golden["stablehlo-cuda"] != golden["stablehlo"]
    assert '"0.6.0" = "stablehlo.txt"' in _toml(tmp_path).partition("[cpu.stablehlo-tpu]")[2]
    assert len(list((tmp_path / FOLDER).glob("stablehlo*.txt"))) == 3


def test_it_is_compared_with_the_golden_of_its_platform(tmp_path: Path) -> None:
    """Or with the cell's own StableHLO, if the golden refers to it."""
    _accept(tmp_path, "0.5.0", SINE, tpu=SINE, cuda=COSINE)
    seen, _ = analyse_artifacts({"stablehlo-tpu": SINE.encode(), "stablehlo-cuda": SINE.encode()})
    golden = _golden(tmp_path, "0.6.0")
    assert compare_ir(seen["stablehlo-tpu"], golden["stablehlo-tpu"]) is IrStatus.SAME
    assert compare_ir(seen["stablehlo-cuda"], golden["stablehlo-cuda"]) is IrStatus.CHANGED


def test_goldens_without_a_platform_do_not_judge_it(tmp_path: Path) -> None:
    """Its StableHLO is neither new nor changed."""
    _accept(tmp_path, "0.5.0", SINE)
    assert list(_golden(tmp_path, "0.5.0")) == ["stablehlo"]
    seen, _ = analyse_artifacts({"stablehlo-tpu": COSINE.encode()})
    assert compare_ir(seen["stablehlo-tpu"], None) is IrStatus.UNKNOWN
    assert [e.change for e in _accept(tmp_path, "0.5.0", SINE, tpu=SINE).entries] == [
        AcceptEffect.ADDED
    ]
    assert [e.change for e in _accept(tmp_path, "0.5.0", SINE, tpu=SINE).entries] == [
        AcceptEffect.UNCHANGED
    ]


def test_a_reference_to_missing_stablehlo_is_an_error(tmp_path: Path) -> None:
    """Only other platforms may refer to the cell's own StableHLO."""
    _accept(tmp_path, "0.5.0", SINE, tpu=SINE)
    file = tmp_path / FOLDER / "spans.toml"
    file.write_text(_toml(tmp_path).replace('= "stablehlo"', '= "stablehlo-tpu"'))
    with pytest.raises(GoldenError, match=r"such as stablehlo.txt, or stablehlo"):
        _golden(tmp_path, "0.5.0")
