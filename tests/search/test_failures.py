"""One failure in the words of several releases."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.search.failures import Classes, same_failure

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
def test_another_wording_is_the_same_failure(one: str, other: str) -> None:
    """Advice that was appended, another count, a word left out."""
    assert same_failure(one, other)


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
    assert not same_failure(one, other)


@given(st.text(), st.text())
def test_it_does_not_matter_which_comes_first(one: str, other: str) -> None:
    """And each is the same as itself."""
    assert same_failure(one, one)
    assert same_failure(one, other) == same_failure(other, one)


def test_wordings_are_told_by_the_first_that_was_seen() -> None:
    """So that states that mean the same are equal."""
    failures = Classes(same_failure, SCAN)
    assert failures.first_of(SCAN + " Try pvary.") == SCAN
    assert failures.first_of("ValueError: x") == "ValueError: x"
