"""Functions that a project lists become cases that only name them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.corpus.discovery import discover
from conformance.corpus.function_cases import Function, render_cases, rendered_folder
from conformance.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path


def test_each_is_a_case_of_its_package(tmp_path: Path) -> None:
    """Read like any other: a program, or a probe where it is not staged as a whole."""
    texts = render_cases([
        Function(function="mine.layers:attention", arguments="mine.testing:inputs", devices=4),
        Function(function="mine.Model.step:run", name="step", jit=False, rtol=1e-3),
        Function(function="other:f"),
    ])  # fmt: skip
    assert texts.keys() == {"mine/functions.py", "other/functions.py"}
    for path, text in texts.items():
        (tmp_path / path).parent.mkdir()
        (tmp_path / path).write_text(text)
    cases = {case.id: case for case in discover([tmp_path / path for path in texts])}
    assert cases.keys() == {"mine/attention", "mine/step", "other/f"}
    assert (cases["mine/attention"].kind, cases["mine/attention"].devices) == ("program", 4)
    assert (cases["mine/step"].kind, cases["mine/step"].rtol) == ("probe", 1e-3)
    assert cases["mine/attention"].doc == "mine.layers:attention"


@given(st.lists(st.recursive(st.integers() | st.floats(allow_nan=False, allow_infinity=False),
                             st.lists, max_leaves=4), max_size=3))  # fmt: skip
def test_arguments_stand_in_it_as_they_are(arguments: list[Any]) -> None:
    """Whatever TOML can say of numbers."""
    (text,) = render_cases([Function(function="mine:f", arguments=arguments)]).values()
    calls = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call)]
    (asked,) = [n for n in calls if isinstance(n.func, ast.Name) and n.func.id == "given"]
    assert ast.literal_eval(asked.args[0]) == arguments


def test_the_same_list_is_the_same_folder() -> None:
    """And another list is another."""
    one, other = ([Function(function=f"mine:{name}")] for name in "fg")
    assert (
        rendered_folder(render_cases(one))
        == rendered_folder(render_cases(one))
        != rendered_folder(render_cases(other))
    )


@pytest.mark.parametrize(
    ("functions", "said"),
    [
        ([{"function": "mine.f"}], "function 'mine.f': expected module:name"),
        ([{"function": "mine:f", "arguments": "x"}], "function 'x': expected module:name"),
        ([{"function": "mine:f", "name": "a b"}], "name 'a b': expected an identifier"),
        (
            [{"function": "mine.a:f"}, {"function": "mine.b:f"}],
            "are both mine/f; name one otherwise",
        ),
    ],
)
def test_what_cannot_be_listed(functions: list[dict[str, Any]], said: str) -> None:
    """One error that names the function."""
    with pytest.raises(UsageError, match=said):
        render_cases([Function(**one) for one in functions])
