"""Patterns of errors, independent of the drawn example."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.suites.known.error_patterns import LONGEST, make_pattern, make_reason, mask_values

ALIKE = [
    (
        "out.dtype=uint8, but should be uint64 [cumulative_prod(uint8)]\nassert dtype('uint8')",
        "out.dtype=int32, but should be int64 [cumulative_prod(int32)]",
        r"^out\.dtype=.*, but should be .* \[cumulative_prod\(.*\)\]",
    ),
    (
        "out=(nan+nanj), but should be π/2 + NaN j [acos()]\n",
        "out=-1.5e-93j, but should be ±3π/4 + 0j [acos()]",
        r"^out=.*, but should be .* \[acos\(\)\]",
    ),
    (
        "out.shape=(0, 3), but should be () [sum(shape=(0, 3))]",
        "out.shape=(), but should be (1,) [sum(shape=())]",
        r"^out\.shape=.*, but should be .* \[sum\(shape=.*\)\]",
    ),
    (
        "assert False\n +  where False = isinstance(np.float32(1.19e-07), float)",
        "assert False\n +  where False = isinstance(np.float16(0.5), float)",
        r"^assert False\n \+  where False = isinstance\(np\..*, float\)",
    ),
    (
        "no support below (0, 5) but ((0, 0)) was asked, see https://docs/a.html",
        "no support below (1, 0) but ((0, 3)) was asked, see https://docs/b.html",
        r"^no support below .* but \(.*\) was asked, see ",
    ),
    ("assert 3 == 4", "assert 5 == 7", "^assert "),
]


@pytest.mark.parametrize(("one", "other", "pattern"), ALIKE)
def test_examples_of_one_cause_have_one_pattern(one: str, other: str, pattern: str) -> None:
    """Numbers, dtypes, shapes and addresses are left out; assertion and function stay."""
    assert make_pattern(one) == pattern
    assert re.search(pattern, other)


def test_values_are_masked_with_an_ellipsis() -> None:
    """A message that would be empty stays unchanged."""
    message = "out=(nan+nanj), but should be π/2 + NaN j [acos()]\nassert (nan+nanj) == 1"
    assert mask_values(message) == "out=…, but should be … [acos()]"
    assert mask_values("assert 3 == 4") == "assert 3 == 4"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Argument 'device' missing from signature", "Argument 'x2' missing from signature"),
        ("out=1, but should be 2 [exp()]", "out=1, but should be 2 [log()]"),
        ("module 'jax' has no attribute 'a'", "module 'jax' has no attribute 'b'"),
        ("out.dtype=int8, but should be 3", "out.shape=(3,), but should be 3"),
    ],
)
def test_other_causes_have_other_patterns(one: str, other: str) -> None:
    """Another message, or the same about another function."""
    assert re.search(make_pattern(one), other) is None


messages = st.lists(
    st.one_of(
        st.text(max_size=30),
        st.sampled_from(
            ["out=", "(3, 4)", "[f(uint8)]", "'a'", "'no name'", "assert False\n", "x" * 90]
        ),
    ),
    max_size=12,
).map("".join)


@given(messages)
def test_pattern_matches_its_own_message(message: str) -> None:
    """It is a valid, short regular expression on one line, for any message."""
    pattern = make_pattern(message)
    assert re.search(pattern, message) is not None
    assert len(pattern) <= 2 * LONGEST
    assert "\n" not in pattern


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("\nout=3, but should be 4\nassert 3 == 4", "out=3, but should be 4"),
        ("assert False\n +  where False = f(3)\n +  more", "assert False +  where False = f(3)"),
        ("x" * 300, "x" * 200 + "..."),
        ("", "ValueError"),
    ],
)
def test_reason_is_the_beginning_of_the_error(message: str, reason: str) -> None:
    """As a provisional reason."""
    assert make_reason(message, "ValueError") == reason
