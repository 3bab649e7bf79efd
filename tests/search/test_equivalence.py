"""Which failures and outputs are the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.search.equivalence import (
    EquivalenceClasses,
    find_differing_lines,
    find_unstable_lines,
    is_same_failure,
    is_same_output,
)

SCAN = (
    "TypeError: scan body function carry input and carry output must have equal types, but they "
    "differ: The input carry component loop_carry[1] has type float32[4] but the corresponding "
    "output carry component has type float32[4]{V:x}, so the varying manual axes do not match."
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (SCAN, SCAN + " This might be fixed by applying jax.lax.pvary(..., ('x',)) to it."),
        (SCAN, SCAN.replace("component has", "has").replace("loop_carry[1]", "loop_carry[7]")),
        ("ValueError: got 3 axes", "ValueError: got 12 axes"),
        ("timeout: no end", "timeout: no end"),
        (
            "ImportError: cannot import name 'a' from 'jax.x' (x.py)",
            "ImportError: cannot import name 'a' from 'jax._src.x' (x.py)",
        ),
    ],
)
def test_a_reworded_message_is_the_same_failure(one: str, other: str) -> None:
    """Appended advice, another count, a missing word."""
    assert is_same_failure(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (SCAN, SCAN.replace("TypeError", "ValueError")),
        (SCAN, "TypeError: while_loop() got an unexpected keyword argument 'max_steps'"),
        ("AttributeError: module 'jax' has no attribute 'tree_map'", "ok"),
        ("SIGSEGV: the process was ended by SIGSEGV", "SIGABRT: the process was ended by SIGABRT"),
        ("exit: status 1", "ok"),
        (
            "AttributeError: module 'jax.api_util' has no attribute 'debug_info'",
            "AttributeError: module 'jax.core' has no attribute 'get_opaque_trace_state'",
        ),
        (
            "ImportError: cannot import name 'a' from 'jax.x' (x.py)",
            "ImportError: cannot import name 'b' from 'jax.x' (x.py)",
        ),
        (
            "TypeError: f() got an unexpected keyword argument 'check_rep'",
            "TypeError: f() got an unexpected keyword argument 'axis_types'",
        ),
    ],
)
def test_another_type_or_message_is_another_failure(one: str, other: str) -> None:
    """It fails for another reason."""
    assert not is_same_failure(one, other)


@given(st.text(), st.text())
def test_equivalence_of_failures_is_symmetric_and_reflexive(one: str, other: str) -> None:
    """And each is the same as itself."""
    assert is_same_failure(one, one)
    assert is_same_failure(one, other) == is_same_failure(other, one)


def test_a_class_is_represented_by_its_first_wording() -> None:
    """So states with the same meaning are equal."""
    failures = EquivalenceClasses(is_same_failure, SCAN)
    assert failures.find_first(SCAN + " Try pvary.") == SCAN
    assert failures.find_first("ValueError: x") == "ValueError: x"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("[1.         2.0000002]", "[1. 2.]", True),
        ("loss 0.12345", "loss 0.12346", True),
        ("loss 0.12", "loss 0.13", False),
        ("1e-05 .5", "1.0e-05 0.5", True),
        ("[ 1 12]", "[1 12]", True),
        ("[1 12]", "[11 2]", False),
        ("nan 1.0", "0.0 1.0", False),
        ("float32 1.0", "float64 1.0", False),
        ("one", "one\ntwo", False),
    ],
)
def test_printed_numbers_have_a_tolerance(one: str, other: str, same: bool) -> None:
    """Other text must be equal, except spaces that align numbers."""
    assert is_same_output(one, other) is same
    assert is_same_output(one, other, exact=True) is False


@given(st.text(), st.text())
def test_equivalence_of_outputs_is_symmetric_and_reflexive(one: str, other: str) -> None:
    """Every output is the same as itself, and the order of two does not count."""
    assert is_same_output(one, one, exact=True)
    assert is_same_output(one, other) is is_same_output(other, one)


def test_an_unstable_line_is_ignored() -> None:
    """Two runs of one cell identify it."""
    unstable = find_unstable_lines("seed 1\nok", "seed 2\nok")
    assert unstable == {0}
    assert is_same_output("seed 3\nok", "seed 4\nok", unstable)
    assert list(find_differing_lines("seed 3\nok", "seed 4\nbad", unstable)) == [(1, "ok", "bad")]
