"""IRs and facts against their goldens."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.judge.ir import compare_ir, find_changed_facts
from conformance.judge.verdict import Judgement, judge
from conformance.model.case import Policy
from conformance.model.golden import GoldenEntry, GoldenIr
from conformance.model.outcome import Verdict
from conformance.model.record import IrRecord, IrStatus
from tests.builders import case, deviation, f32, f64, ok

SEEN = IrRecord(exact="s", canonical="n", version=1)
FACTS = {"collectives": {"all-reduce": 1}, "dtypes": ["f32"], "host_compute": False}


@pytest.mark.parametrize(
    ("golden", "expected"),
    [
        (GoldenIr(exact="s", canonical="n"), IrStatus.SAME),
        (GoldenIr(exact="other", canonical="n"), IrStatus.REGROUPED),
        (GoldenIr(exact="", canonical="n"), IrStatus.SAME),
        (GoldenIr(exact="s", canonical="other"), IrStatus.CHANGED),
        (GoldenIr(), IrStatus.UNKNOWN),
        (None, IrStatus.UNKNOWN),
    ],
)
def test_fingerprints_decide_the_status_of_an_ir(
    golden: GoldenIr | None, expected: IrStatus
) -> None:
    """Same exact form, same canonical form, changed, or unknown without a golden."""
    assert compare_ir(SEEN, golden) is expected


def test_an_ir_without_a_fingerprint_is_unknown() -> None:
    """It is neither the same nor changed."""
    nothing = IrRecord(version=1, not_understood={"hlo line 3: got '?'": 1})
    assert compare_ir(nothing, GoldenIr(exact="s", canonical="n")) is IrStatus.UNKNOWN


@pytest.mark.parametrize(
    ("fact", "seen", "sentence"),
    [
        (
            "collectives",
            {"all-reduce": 1, "all-gather": 2},
            "fact collectives: all-gather 2, golden 0",
        ),
        ("dtypes", ["bf16"], "fact dtypes: bf16 new; f32 gone"),
        ("host_compute", True, "fact host_compute: True, golden False"),
        ("parameters", [{"type": "f32[2]"}], "fact parameters: 1 of them, golden 0"),
    ],
)
def test_a_changed_fact_is_one_sentence(fact: str, seen: Any, sentence: str) -> None:
    """It names the fact, the observed and the recorded value."""
    golden = {**FACTS, "parameters": []}
    assert list(find_changed_facts({**golden, fact: seen}, golden)) == [sentence]


def test_a_sharding_missing_on_one_side_is_no_change() -> None:
    """Some releases do not print the shardings of parameters."""
    said = {"parameters": [{"type": "f32[2]", "sharding": "tiled [4] over 0,1,2,3"}]}
    unsaid = {"parameters": [{"type": "f32[2]"}]}
    other = {"parameters": [{"type": "f32[2]", "sharding": "replicated"}]}
    assert not list(find_changed_facts(unsaid, said))
    assert list(find_changed_facts(other, said)) == [
        "fact parameters[0] sharding: replicated, golden tiled [4] over 0,1,2,3"
    ]


def test_facts_that_do_not_gate_are_ignored() -> None:
    """The number of fusions is up to the compiler."""
    assert not list(find_changed_facts({"fusions": {"kLoop": 2}}, {"fusions": {"kLoop": 1}}))


def _judge(what: Any, **seen: Any) -> Judgement:
    golden = GoldenEntry(
        span="0.5.0",
        value=f32(1),
        facts=FACTS,
        ir={"hlo": GoldenIr(exact="s", canonical="n"), "jaxpr": GoldenIr(canonical="n")},
    )
    facts = seen.pop("facts", FACTS)
    observation = ok(f32(1), facts=facts, ir=seen.pop("ir", {"hlo": SEEN}), **seen)
    return judge(what, "0.5.3", "cpu", {"jax": "0.5.3"}, observation, golden)


def test_the_same_value_by_other_collectives_is_a_change() -> None:
    """Facts gate, and the reason has the command to accept."""
    judged = _judge(case(), facts={**FACTS, "collectives": {"all-reduce": 2}})
    assert judged.verdict is Verdict.CHANGED
    assert judged.reasons == (
        "fact collectives: all-reduce 2, golden 1; if intended: conformance accept family/name",
    )


def test_a_case_may_loosen_the_policy() -> None:
    """Its facts are then reported but do not gate."""
    loose = case(policy={"facts": Policy.WARN})
    judged = _judge(loose, facts={**FACTS, "collectives": {"all-reduce": 2}})
    assert judged.verdict is Verdict.MATCH


def test_a_changed_ir_gates_only_if_the_case_says_so() -> None:
    """By default optimised HLO informs."""
    changed = {"hlo": IrRecord(exact="x", canonical="x", version=1)}
    assert _judge(case(), ir=changed).verdict is Verdict.MATCH
    assert _judge(case(), ir=changed).ir == {"hlo": IrStatus.CHANGED}
    strict = case(policy={"hlo": Policy.GATE})
    assert _judge(strict, ir=changed).verdict is Verdict.CHANGED


def test_a_known_deviation_with_other_facts_is_a_change() -> None:
    """The declaration covers the value, not the facts."""
    declared = case(deviations=(deviation("<0.6", outcome="ok"),))
    judged = _judge(declared, facts={**FACTS, "dtypes": ["f64"]}, reference=f64(2))
    assert judged.verdict is Verdict.CHANGED
