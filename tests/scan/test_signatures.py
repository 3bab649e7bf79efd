"""Recorded signatures, and the calls that fit them."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.scan.signatures import (
    CallShape,
    find_misfit,
    find_moved,
    list_changed_defaults,
    parse_signature,
)


def parse(text: str) -> Any:
    """Return a signature that states its parameters."""
    found = parse_signature(text)
    assert found is not None
    return found


def call(positions: int = 0, *keywords: str, **more: Any) -> CallShape:
    """Return the shape of a call."""
    return CallShape(positions=positions, keywords=frozenset(keywords), **more)


@pytest.mark.parametrize("text", ["(...)", "ufunc(2 to 1)", "enum(A, B)", "", "(not a signature"])
def test_callables_without_parameters_have_no_signature(text: str) -> None:
    """Nothing can be told about their calls."""
    assert parse_signature(text) is None


def test_objects_and_anonymous_parameters_can_be_read() -> None:
    """As `api_signatures` writes them."""
    found = parse("(_, _, /, axis=<DeprecatedArg>, *, mode='x', **rest) deprecated")
    assert [one.name for one in found.parameters] == ["_", "_", "axis", "mode"]
    assert found.any_keywords
    assert not found.any_positions


@pytest.mark.parametrize(
    ("signature", "shape", "why"),
    [
        ("(a, b=1)", call(1), ""),
        ("(a, b=1)", call(3), "takes 2 arguments by position, not 3"),
        ("(a, b=1)", call(1, "c"), "has no parameter `c`"),
        ("(a, /, b=1)", call(0, "a"), "takes `a` by position only"),
        ("(a, b=1)", call(1, "a"), "`a` is given by position and by keyword"),
        ("(a, b)", call(1), "`b` has no default"),
        ("(a, b)", call(1, partial=True), ""),
        ("(a, b)", call(0, more_keywords=True), ""),
        ("(a, *, b)", call(2), "takes 1 arguments by position, not 2"),
        ("(*args, **kwargs)", call(7, "x"), ""),
    ],
)
def test_calls_that_do_not_fit_say_why(signature: str, shape: CallShape, why: str) -> None:
    """In the words of a TypeError."""
    assert find_misfit(parse(signature), shape) == why


NAMES = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=5, unique=True)


@given(NAMES, st.integers(0, 5), st.integers(0, 6), st.sets(st.sampled_from("abcdefg")), st.data())
def test_python_agrees(
    names: list[str], kinds: int, positions: int, keywords: set[str], data: st.DataObject
) -> None:
    """A call has no misfit exactly if Python binds it."""
    first = data.draw(st.integers(0, len(names)))
    last = data.draw(st.integers(first, len(names)))
    parts = [*names[:first], *(["/"] if first else []), *names[first:last]]
    parts += ["*", *names[last:]] if last < len(names) else []
    text = f"({', '.join(parts)})"
    scope: dict[str, Any] = {}
    exec(f"def f{text}: pass", scope)  # noqa: S102 - of the letters above
    arguments = dict.fromkeys(keywords)
    try:
        inspect.signature(scope["f"]).bind(*range(positions), **arguments)
        fits = True
    except TypeError:
        fits = False
    assert (find_misfit(parse(text), call(positions, *keywords)) == "") == fits


def test_a_parameter_that_moved_is_another_meaning() -> None:
    """One that was renamed keeps its meaning."""
    shape = call(2)
    assert find_moved(parse("(a, b, c=1)"), parse("(a, c=1, b=2)"), shape) == (
        "the argument for `b` goes to `c`"
    )
    assert find_moved(parse("(a, b)"), parse("(a, renamed)"), shape) == ""


def test_defaults_count_where_the_call_uses_them() -> None:
    """The default dtype has two spellings."""
    before, after = parse("(a, b='x', dtype=float)"), parse("(a, b='y', dtype=None)")
    assert list_changed_defaults(before, after, call(1)) == [("b", "'x'", "'y'")]
    assert list_changed_defaults(before, after, call(1, "b")) == []
    assert list_changed_defaults(before, after, call(2)) == []
