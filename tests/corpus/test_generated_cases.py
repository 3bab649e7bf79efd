"""Generated case files: of functions that a project lists, and of calls in a script."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.corpus.discovery import discover
from conformance.corpus.generated_cases import (
    Function,
    find_snapshots,
    get_script_family,
    hash_case_files,
    render_cases,
    render_snapshot_cases,
)
from conformance.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path


def test_each_listed_function_is_a_case_of_its_package(tmp_path: Path) -> None:
    """A program, or a probe if it is not staged as a whole."""
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
def test_arguments_are_rendered_as_literals(arguments: list[Any]) -> None:
    """Including all numbers of TOML."""
    (text,) = render_cases([Function(function="mine:f", arguments=arguments)]).values()
    calls = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call)]
    (asked,) = [n for n in calls if isinstance(n.func, ast.Name) and n.func.id == "given"]
    assert ast.literal_eval(asked.args[0]) == arguments


def test_equal_lists_have_the_same_hash() -> None:
    """Other lists have another hash."""
    one, other = ([Function(function=f"mine:{name}")] for name in "fg")
    assert (
        hash_case_files(render_cases(one))
        == hash_case_files(render_cases(one))
        != hash_case_files(render_cases(other))
    )


@pytest.mark.parametrize(
    ("functions", "said"),
    [
        ([{"function": "mine.f"}], "function 'mine.f': expected module:name"),
        ([{"function": "mine:f", "arguments": "x"}], "function 'x': expected module:name"),
        ([{"function": "mine:f", "name": "a b"}], "name 'a b': expected an identifier"),
        (
            [{"function": "mine.a:f"}, {"function": "mine.b:f"}],
            "are both mine/f; set another name for one",
        ),
    ],
)
def test_an_invalid_function_is_an_error(functions: list[dict[str, Any]], said: str) -> None:
    """The message names the function."""
    with pytest.raises(UsageError, match=said):
        render_cases([Function(**one) for one in functions])


SCRIPT = """\
import conformance
from conformance import snapshot


def loss(x):
    return snapshot(len, x)


conformance.snapshot(loss, 3)
conformance.snapshot(
    loss,
    4,
)
if __name__ == "__main__":
    print(snapshot(model.apply, params, x=1))
for n in range(3):
    snapshot(lambda x: x * "n", n)
other.snapshot(loss, 5)
snapshot()
"""


def test_snapshots_at_the_top_level_are_found() -> None:
    """With their names and lines; calls within functions are ignored."""
    assert [(one.name, one.first, one.last) for one in find_snapshots(SCRIPT)] == [
        ("loss", 9, 9),
        ("loss_2", 10, 13),
        ("model_apply", 15, 15),
        ("lambda_x_x_n", 17, 17),
    ]


@pytest.mark.parametrize("text", ["", "print(1)\n", "snapshot(\n", "def f(): snapshot(g)\n"])
def test_a_script_without_snapshots_has_no_cases(text: str) -> None:
    """Nor has a text that is not Python."""
    assert find_snapshots(text) == []


def test_each_snapshot_is_a_case(tmp_path: Path) -> None:
    """Its hash changes with the files that it depends on."""
    script = tmp_path / "my-report.py"
    file = tmp_path / get_script_family(script) / "functions.py"
    file.parent.mkdir()
    read = []
    for digest in ("a", "b"):
        file.write_text(render_snapshot_cases(script, find_snapshots(SCRIPT), digest))
        read.append(discover([file]))
    assert read[0][0].content_hash != read[1][0].content_hash
    assert [case.id for case in read[0]] == [
        "my_report/loss", "my_report/loss_2", "my_report/model_apply", "my_report/lambda_x_x_n",
    ]  # fmt: skip
    assert read[0][0].doc == "my-report.py, line 9: loss"
