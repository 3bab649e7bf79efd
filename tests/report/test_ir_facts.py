"""The facts in which two IRs differ."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.report.ir_facts import compare_facts


@pytest.mark.parametrize(
    ("a", "b", "rows"),
    [
        ({"ops": {"add": 1}}, {"ops": {"add": 1}}, []),
        ({"ops": {"add": 1}}, {"ops": {}}, ["ops add: 1 -> 0"]),
        ({"collectives": {}}, {"collectives": {"psum": 2}}, ["! collectives psum: 0 -> 2"]),
        (
            {"dtypes": ["f32"]},
            {"dtypes": ["s32"]},
            ["! dtypes f32: yes -> no", "! dtypes s32: no -> yes"],
        ),
        ({"host_compute": False}, {"host_compute": True}, ["! host_compute: no -> yes"]),
        (
            {"results": [{"type": "f32[]"}]},
            {"results": [{"type": "f32[]", "memory": "host"}]},
            ["! results[0] memory: not said -> host"],
        ),
        ({"results": []}, {"results": [{"type": "f32[]"}]}, ["! results: 0 of them -> 1"]),
    ],
)
def test_differences(a: dict[str, Any], b: dict[str, Any], rows: list[str]) -> None:
    """What was there before and after, and whether a run fails of it."""
    found = compare_facts(a, b)
    assert [f"{'! ' * r.gates}{r.name}: {r.before} -> {r.after}" for r in found] == rows


def test_what_gates_comes_first() -> None:
    """The rest is for the curious."""
    a = {"ops": {"add": 1}, "custom_calls": {}}
    b = {"ops": {"add": 2}, "custom_calls": {"topk": 1}}
    assert [row.fact for row in compare_facts(a, b)] == ["custom_calls", "ops"]


def test_a_sharding_that_one_side_does_not_say_gates_nothing() -> None:
    """Two that differ do."""
    said, other, unsaid = ({"parameters": [{"sharding": s} if s else {}]} for s in ("x", "y", ""))
    assert [row.gates for row in compare_facts(said, unsaid)] == [False]
    assert [row.gates for row in compare_facts(said, other)] == [True]
