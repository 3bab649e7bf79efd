"""Findings that the history or a deviation explains: no more than these."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from conformance.corpus.behaviour_changes import BehaviourChange
from conformance.fuzz.known_changes import find_known
from conformance.model.case import Case, Deviation
from tests.fuzz.test_script_file import make_finding
from tests.report.fuzz.test_issue import make_results

CHANGE = BehaviourChange(
    release="0.12.0", summary="`jnp.sin` counts from one", source="jax-ml/jax#1",
    case="numerics/sums", shown_by="value",
)  # fmt: skip


def make_case(**changes: Any) -> Case:
    """Return a case with one deviation."""
    fields = {"releases": "<0.12", "error": "TypeError", "match": "must have equal types"}
    return Case(
        id="f/case", family="f", topic="t", name="case", kind="probe", file=Path("t.py"), line=1,
        deviations=(Deviation(**(fields | changes)),),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("finding", "change", "known"),
    [
        ({}, {}, "numerics/sums"),
        ({}, {"release": "0.11.0"}, ""),
        ({}, {"release": "0.11.0", "observed_in": "0.12.0", "why": "late"}, "numerics/sums"),
        ({}, {"summary": "`jnp.cos` counts from one"}, ""),
        ({}, {"summary": "a sin of jnp counts from one"}, ""),
        ({}, {"shown_by": "hlo"}, ""),
        ({"releases": ("0.11.0", "0.12.0")}, {}, ""),
        ({"operations": ("jnp.cos", "jnp.sin")}, {}, ""),
        ({"operations": ("jnp.cos", "jnp.sin")}, {"summary": "`vmap(sin)` is one"},
         "numerics/sums"),
        ({"operations": ("jax.scipy.stats.cauchy.ppf",)}, {"case": "numerics/cauchy_ppf[x]"},
         "numerics/cauchy_ppf[x]"),
        ({"operations": ("jnp.where",)}, {"case": "numerics/where_it_is"}, ""),
        ({"operations": ("jnp.cumulative_sum",)}, {"case": "numerics/cumulative_sum_of_zeros"},
         "numerics/cumulative_sum_of_zeros"),
        ({"transforms": ("explicit mesh",)}, {}, ""),
        ({"transforms": ("explicit mesh",)}, {"summary": "`jnp.sin` on a mesh"}, "numerics/sums"),
        ({"oracle": "eager"}, {}, ""),
        ({"oracle": "eager", "results": make_results(("ok", "1", False, None), ("ok", "2", True,
         None))}, {"release": "0.2.0"}, "numerics/sums"),
    ],
)  # fmt: skip
def test_a_change_explains_a_finding_of_its_release_and_code(
    finding: dict[str, Any], change: dict[str, Any], known: str
) -> None:
    """Words outside of code are English."""
    changes = [msgspec.structs.replace(CHANGE, **change)]
    assert find_known(make_finding(**finding), changes) == known


ERROR = {
    "kind": "outcome", "detail": "TypeError: carry must have equal types became ok",
}  # fmt: skip


@pytest.mark.parametrize(
    ("finding", "deviation", "known"),
    [
        ({}, {}, "f/case"),
        ({}, {"releases": ">=0.11,<0.12"}, "f/case"),
        ({}, {"releases": "<0.11"}, ""),
        ({}, {"error": "ValueError"}, ""),
        ({}, {"match": "equal"}, ""),
        ({}, {"match": "must have other types"}, ""),
        ({}, {"platform": "tpu:v5e:2x2"}, ""),
        ({"kind": "value"}, {}, ""),
        ({"releases": ("0.10.0", "0.12.0")}, {}, ""),
    ],
)
def test_a_deviation_explains_a_finding_with_its_error(
    finding: dict[str, Any], deviation: dict[str, Any], known: str
) -> None:
    """Where its range begins or ends."""
    assert find_known(make_finding(**(ERROR | finding)), [], [make_case(**deviation)]) == known
