"""Readings of HLO by regular expressions."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.triage.repro.assertions import is_met, render_reading
from conformance.triage.repro.stand_ins import find_imports

HLO = """\
HloModule jit_f, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias), \
{}: (1, {}, must-alias) }, entry_computation_layout={(f32[4]{0})->f32[4]{0}}
  %a = f32[4]{0:S(5)} all-reduce-start(%p), channel_id=1
  %b = f32[4]{0} all-reduce-done(%a)
  %c = f32[4]{0} all-gather(%b), metadata={op_name="all-reduce"}
  %d = f32[4]{0} custom-call(%c), custom_call_target="HostExecute"
"""


@pytest.mark.parametrize(
    ("name", "claim", "answer"),
    [
        ("collectives", {"all-reduce": 1, "all-gather": 1, "all-to-all": 0}, True),
        ("collectives", {"all-reduce": 2}, False),
        ("custom_calls", {"HostExecute": 1}, True),
        ("host_compute", False, True),
        ("host_compute", True, False),
        ("memory_spaces", {}, False),
        (
            "donation",
            ["parameter 0 -> output [0] may-alias", "parameter 1 -> output [] must-alias"],
            True,
        ),
    ],
)
def test_reading_meets_the_claim(name: str, claim: Any, answer: bool) -> None:
    """As the facts of an IR do."""
    assert is_met(name, claim, HLO) is answer


def test_reading_runs_with_its_imports() -> None:
    """It needs nothing else."""
    names: dict[str, Any] = {}
    text = render_reading("collectives")
    exec("\n".join([*find_imports(text), text]), names)  # noqa: S102 - our own text
    assert names["collectives"](HLO) == {"all-reduce": 1, "all-gather": 1}
