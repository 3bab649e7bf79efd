"""What XLA dumps beside a script, added up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.triage.programs.dumped import NotUnderstoodError, added, facts_of_dump

if TYPE_CHECKING:
    from pathlib import Path

HLO = """HloModule jit_f

ENTRY %main (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  ROOT %m = f32[4]{0} multiply(%p, %p)
}
"""


def test_facts_of_all_programs_are_added(tmp_path: Path) -> None:
    """Files of other steps, and what describes one program alone, are left out."""
    for number in (1, 2):
        (tmp_path / f"module_000{number}.jit_f.cpu_after_optimizations.txt").write_text(HLO)
    (tmp_path / "module_0001.jit_f.before_optimizations.txt").write_text(HLO)
    facts = facts_of_dump(tmp_path)
    assert facts["ops"] == {"multiply": 2, "parameter": 2}
    assert facts["dtypes"] == ["f32"]
    assert "parameters" not in facts


def test_nothing_compiled_has_no_facts(tmp_path: Path) -> None:
    """Also where XLA was never loaded, and made no folder."""
    assert facts_of_dump(tmp_path / "none") == {}


def test_a_text_that_is_not_understood_is_named(tmp_path: Path) -> None:
    """It must not count as a program without facts."""
    (tmp_path / "module_0001.jit_f.cpu_after_optimizations.txt").write_text("HloModule x\n\nENTRY")
    with pytest.raises(NotUnderstoodError, match="cpu_after_optimizations"):
        facts_of_dump(tmp_path)


def test_what_is_true_of_one_is_true_of_all() -> None:
    """Numbers are added, names put together."""
    tables = [
        {"host_compute": False, "flops": 2.0, "dtypes": ["f32"], "results": [{}]},
        {"host_compute": True, "flops": 3.0, "dtypes": ["bf16", "f32"], "results": [{}]},
    ]
    assert added(tables) == {"host_compute": True, "flops": 5.0, "dtypes": ["bf16", "f32"]}
