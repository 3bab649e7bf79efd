"""Commutative, impure and host operations."""

from __future__ import annotations

import pytest

from conformance.ir.graph import Computation, Instruction, Tensor
from conformance.ir.vocabulary import Purity, is_commutative, runs_on_host

F32 = Tensor("f32")


def one(op: str, *bodies: Computation, **attributes: object) -> Instruction:
    """Return an instruction."""
    inner = tuple(("body", body) for body in bodies)
    return Instruction(name="i", op=op, type=F32, attributes=attributes, bodies=inner)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [
        (one("add"), True),
        (one("subtract"), False),
        (one("compare", direction="EQ"), True),
        (one("compare", comparison_direction="NE"), True),
        (one("compare", direction="LT"), False),
    ],
    ids=repr,
)
def test_commutative_operations_are_known(instruction: Instruction, expected: bool) -> None:
    """Including equality."""
    assert is_commutative(instruction) is expected


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("add", True),
        ("all-reduce", False),
        ("psum", False),
        ("all-reduce-start", False),
        ("custom-call", False),
        ("rng", False),
        ("optimization-barrier", True),
    ],
)
def test_impure_operations_are_known(op: str, expected: bool) -> None:
    """Also halves of asynchronous operations."""
    assert Purity().is_pure(one(op)) is expected


@pytest.mark.parametrize("op", ["while", "call", "fusion", "shard_map", "scan"])
def test_callers_of_impure_computations_are_impure(op: str) -> None:
    """At any depth."""
    pure, inner, outer = Purity(), Computation("f", [one("all-gather")]), Computation("g")
    outer.instructions.append(one(op, inner))
    pure.add(inner)
    pure.add(outer)
    assert not pure.is_pure(one(op, outer))
    assert pure.is_pure(one(op, Computation("h", [one("add")])))


@pytest.mark.parametrize(
    "instruction",
    [
        one("call", frontend_attributes=(("_xla_compute_type", "host"),)),
        one("call", _xla_compute_type="host"),
        one("async-start", async_execution_thread="host"),
        one("custom-call", custom_call_target="HostExecute"),
    ],
    ids=repr,
)
def test_work_on_the_host_is_detected(instruction: Instruction) -> None:
    """By any of its marks."""
    assert runs_on_host(instruction)
    assert not runs_on_host(one("call", frontend_attributes=(("other", "host"),)))
