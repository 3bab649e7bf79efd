"""Goldens of IRs: a text for each span of the same work, a fingerprint for each structure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from conformance.golden.accept import apply, plan_accept
from conformance.golden.accept_plan import AcceptEffect, AcceptPlan, Candidate
from conformance.golden.document import GoldenError
from conformance.golden.store import GoldenStore
from conformance.ir.analysis import Analysis, analyse
from conformance.ir.normal.text import VERSION
from conformance.model.record import IrRecord
from tests.builders import case, f32, ok, raised

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.model.golden import GoldenEntry
    from conformance.model.observation import Observation

KNOWN = ["0.5.0", "0.5.3", "0.6.0", "0.7.0"]
CASE = case()
FOLDER = "family/golden/topic/name"

FUSED = """HloModule jit_f

fused {
  p = f32[4]{0} parameter(0)
  ROOT r = f32[4]{0} multiply(p, p)
}

ENTRY main {
  x = f32[4]{0} parameter(0)
  ROOT f = f32[4]{0} fusion(x), kind=kLoop, calls=fused
}
"""
PLAIN = """HloModule jit_f

ENTRY main {
  x = f32[4]{0} parameter(0)
  ROOT r = f32[4]{0} multiply(x, x)
}
"""
OTHER = PLAIN.replace("multiply", "add")


def _record(analysis: Analysis) -> IrRecord:
    return IrRecord(exact=analysis.exact, canonical=analysis.canonical, version=VERSION)


def _seen(hlo: str) -> Observation:
    analysis = analyse(hlo, "hlo")
    return ok(f32(1), facts=analysis.facts, ir={"hlo": _record(analysis)})


def _accept(root: Path, **texts: str) -> AcceptPlan:
    """Accept an HLO text for each release, `v0_5_0="..."`."""
    candidates = [
        Candidate(
            case=CASE,
            variant="cpu",
            release=name.removeprefix("v").replace("_", "."),
            observation=_seen(hlo),
            text=lambda ir, hlo=hlo: analyse(hlo, ir, with_text=True).text,  # type: ignore[misc]
        )
        for name, hlo in texts.items()
    ]
    plan = plan_accept(GoldenStore(root), candidates, KNOWN)
    apply(plan, env={})
    return plan


def _golden(root: Path, release: str) -> GoldenEntry:
    found = GoldenStore(root).lookup(CASE, "cpu", release)
    assert found is not None
    return found


def _toml(root: Path) -> str:
    return (root / FOLDER / "spans.toml").read_text()


def test_equal_canonical_forms_are_one_span(tmp_path: Path) -> None:
    """The fingerprints of the exact form have separate spans."""
    _accept(tmp_path, v0_5_0=FUSED, v0_5_3=FUSED, v0_6_0=PLAIN, v0_7_0=OTHER)
    text = _toml(tmp_path)
    assert '"0.5.0..0.6.0" = "hlo.until-0.6.0.txt"' in text
    assert '"0.7.0" = "hlo.txt"' in text
    assert f'"0.5.0..0.5.3" = "{VERSION}:' in text
    assert len(list((tmp_path / FOLDER).glob("hlo*.txt"))) == 2


def test_an_accepted_ir_is_looked_up_unchanged(tmp_path: Path) -> None:
    """Both fingerprints, and the text."""
    _accept(tmp_path, v0_6_0=FUSED)
    analysis = analyse(FUSED, "hlo", with_text=True)
    golden = _golden(tmp_path, "0.6.0").ir["hlo"]
    assert (golden.canonical, golden.exact) == (analysis.canonical, analysis.exact)
    assert golden.text == analysis.text


def test_only_gating_facts_are_recorded(tmp_path: Path) -> None:
    """For example types of parameters, but not the number of fusions."""
    _accept(tmp_path, v0_6_0=FUSED)
    facts = _golden(tmp_path, "0.6.0").facts
    assert facts["parameters"] == [{"type": "f32[4]"}]
    assert "fusions" not in facts


def test_a_failure_keeps_recorded_irs(tmp_path: Path) -> None:
    """A program that raises has no HLO that could replace the recorded HLO."""
    _accept(tmp_path, v0_6_0=PLAIN)
    seen = Candidate(case=CASE, variant="cpu", release="0.7.0", observation=raised())
    apply(plan_accept(GoldenStore(tmp_path), [seen], KNOWN), env={})
    assert '"0.6.0" = "hlo.txt"' in _toml(tmp_path)
    assert _golden(tmp_path, "0.7.0").facts == {}


def test_another_ir_alone_is_a_change(tmp_path: Path) -> None:
    """The value may be the same."""
    _accept(tmp_path, v0_6_0=PLAIN)
    assert [e.change for e in _accept(tmp_path, v0_6_0=OTHER).entries] == [AcceptEffect.CHANGED]
    assert [e.change for e in _accept(tmp_path, v0_6_0=OTHER).entries] == [AcceptEffect.UNCHANGED]


def test_a_recorded_text_is_not_rendered_again(tmp_path: Path) -> None:
    """Accepting thousands of unchanged jobs renders no IR."""
    _accept(tmp_path, v0_6_0=PLAIN)

    def fail(ir: str) -> str:
        raise AssertionError(ir)

    seen = Candidate(case=CASE, variant="cpu", release="0.7.0", observation=_seen(FUSED), text=fail)
    apply(plan_accept(GoldenStore(tmp_path), [seen], KNOWN), env={})
    assert '"0.6.0..0.7.0" = "hlo.txt"' in _toml(tmp_path)


def test_an_ir_of_another_normal_form_is_ignored(tmp_path: Path, monkeypatch: Any) -> None:
    """Neither text nor facts are compared."""
    _accept(tmp_path, v0_6_0=PLAIN)
    monkeypatch.setattr("conformance.golden.store.VERSION", VERSION + 1)
    monkeypatch.setattr("conformance.golden.contents.VERSION_OF_FORMS", VERSION + 1)
    golden = _golden(tmp_path, "0.6.0")
    assert golden.ir == {}
    assert golden.facts == {}
    assert golden.value == f32(1)


@pytest.mark.parametrize("name", ["hlo.txt", "facts.json"])
def test_an_edited_content_is_an_error(tmp_path: Path, name: str) -> None:
    """Goldens are accepted, not written by hand."""
    _accept(tmp_path, v0_6_0=PLAIN)
    file = tmp_path / FOLDER / name
    file.write_text(file.read_text().replace("f32[4]", "f32[5]"))
    with pytest.raises(GoldenError, match=r"content hashes to"):
        _golden(tmp_path, "0.6.0")


def test_a_malformed_fingerprint_is_an_error(tmp_path: Path) -> None:
    """The document itself contains it."""
    _accept(tmp_path, v0_6_0=PLAIN)
    file = tmp_path / FOLDER / "spans.toml"
    file.write_text(file.read_text().replace(f'"{VERSION}:', '"x:'))
    with pytest.raises(GoldenError, match="expected a version and 24 hex digits"):
        _golden(tmp_path, "0.6.0")
