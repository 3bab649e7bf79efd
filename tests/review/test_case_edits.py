"""Deviations written into case files: read back as meant, formatted, and nothing else touched."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ruff import find_ruff_bin

from conformance.corpus.discovery import discover
from conformance.errors import UsageError
from conformance.model.case import Deviation
from conformance.review.case_edits import rewrite_case
from conformance.review.proposals import DeviationEdit

if TYPE_CHECKING:
    from collections.abc import Sequence

HEAD = '''\
"""Cases."""

import numpy as np

from conformance.kit import Observed, Program, probe, program
from conformance.kit.compat import shard_map  # another module


@program()
def other(env):
    return Program(np.sin, args=(1.0,))  # as   it is


'''
TAIL = "\ndef case(env):\n    return Observed(np.float32([1, 2]))\n"
SEEN = Deviation(
    releases=">=0.5.1,<0.6",
    error="TypeError",
    match="must have equal types",
    reason='by "design": ' + "a start that does not vary must be marked varying; " * 3,
    issue="jax-ml/jax#27903",
)
VALUE = Deviation(releases="<0.5", outcome="ok", platform="tpu")
LONG = Deviation(releases="<0.5", error="E", match="as long as " * 7, reason="word " * 16)
DECORATORS = {
    "empty": "@probe()",
    "one line": '@probe(devices=4, source="jax-ml/jax#1")',
    "many lines": '@probe(\n    devices=4,\n    source="jax-ml/jax#1",  # where from\n)',
    "empty list": "@probe(devices=2, deviations=[])",
    "list in a line": '@probe(deviations=[deviation("jax<0.4.35", error="X")])',
    "list": (
        '@probe(\n    deviations=[\n        # first\n        deviation("jax<0.4.35"),\n'
        '        # last\n    ],\n    params={"a": {}, "b": {}},\n)'
    ),
    "tuple": '@probe(\n    deviations=(\n        deviation("jax<0.4.35"),\n    ),\n)',
}


def case_file(decorator: str) -> str:
    """Return a case file with a decorated case, and imports of what it uses."""
    head = HEAD
    if "deviation(" in decorator:
        head = HEAD.replace("Program, probe", "Program, deviation, probe", 1)
    return f"{head}{decorator}{TAIL}"


def rewritten(text: str, width: int = 88, **edit: object) -> str:
    """Return a case file in which the deviations of `case` are edited."""
    declaration = DeviationEdit(file=Path("topic.py"), function="case", **edit)  # type: ignore[arg-type] # as it has them
    return rewrite_case(text.encode(), declaration, width).decode()


def declared(
    text: str, deviation: Deviation, params: Sequence[str] = (), *, width: int = 88
) -> str:
    """Return a case file in which `case` declares one deviation more."""
    return rewritten(text, width, deviation=deviation, params=params)


def ended(text: str, deviation: Deviation, releases: str | None) -> str:
    """Return a case file in which a deviation of `case` is for fewer releases, or gone."""
    return rewritten(text, ends=deviation, releases=releases)


def read(text: str, folder: Path) -> dict[str, tuple[Deviation, ...]]:
    """Return what discovery reads of a file."""
    file = folder / "fam" / "topic.py"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, newline="")
    return {case.id.partition("/")[2]: case.deviations for case in discover([file])}


@pytest.mark.parametrize("width", [88, 100, 140])
@pytest.mark.parametrize("deviation", [SEEN, VALUE, LONG], ids=["error", "value", "long"])
@pytest.mark.parametrize("name", DECORATORS)
def test_a_deviation_is_added_after_the_others(
    name: str, deviation: Deviation, width: int, tmp_path: Path
) -> None:
    """The formatter has nothing to change, and the rest stays."""
    before = case_file(DECORATORS[name])
    after = declared(before, deviation, width=width)
    was, now = read(before, tmp_path), read(after, tmp_path)
    assert {case: (*was[case], deviation) for case in was if case != "other"} == {
        case: now[case] for case in now if case != "other"
    }
    assert (now["other"], after.endswith(TAIL)) == ((), True)
    assert after[after.index("\n@program()") :].startswith(HEAD[HEAD.index("\n@program()") :])
    assert "import shard_map  # another module\n" in after
    assert all(note in after for note in ("# first", "# last") if note in before)
    options = ["--isolated", "--line-length", str(width), "-"]
    ruff = find_ruff_bin()
    formatted = subprocess.run(
        [ruff, "format", *options], input=after, capture_output=True, text=True, check=True
    )
    assert formatted.stdout == after
    checked = [ruff, "check", "--isolated", "--select", "I,F821", "-"]
    subprocess.run(checked, input=after, capture_output=True, text=True, check=True)


@pytest.mark.parametrize("name", ["empty", "many lines", "list"])
def test_adding_and_ending_a_deviation_restores_the_file(name: str) -> None:
    """Including its imports."""
    before = case_file(DECORATORS[name])
    assert ended(declared(before, SEEN), SEEN, None) == before


texts = st.text(st.characters(codec="utf-8"), max_size=120)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    name=st.sampled_from(sorted(DECORATORS)),
    said=st.tuples(texts, texts, texts),
    newline=st.sampled_from(["\n", "\r\n"]),
    releases=st.sampled_from(["", "<0.6", ">=0.5,!=0.5.2"]),
)
def test_any_text_of_a_deviation_is_read_back_unchanged(
    name: str, said: tuple[str, str, str], newline: str, releases: str, tmp_path: Path
) -> None:
    """Quotes, backslashes, line ends and what does not print are no part of the code."""
    before = case_file(DECORATORS[name]).replace("\n", newline)
    error, reason, issue = said
    seen = Deviation(releases=releases, error=error, reason=reason, issue=issue)
    after = declared(before, seen)
    found = read(after, tmp_path)
    assert all(found[case][-1] == seen for case in found if case != "other")
    assert after.count("\n") == after.count(newline)
    assert all(c.isprintable() or c in "\r\n" for c in after[len(before) - len(TAIL) :])


@pytest.mark.parametrize("name", ["list", "list in a line", "tuple"])
@pytest.mark.parametrize("releases", ["<0.4.33", ">=0.4.31,<0.4.33", ""])
def test_only_the_range_of_an_ending_deviation_changes(
    name: str, releases: str, tmp_path: Path
) -> None:
    """The literal is replaced in place."""
    before = case_file(DECORATORS[name])
    (old,) = next(found for case, found in read(before, tmp_path).items() if case != "other")
    after = ended(before, old, releases)
    literal = f'"jax{releases}"' if releases else '""'
    assert after == before.replace('"jax<0.4.35"', literal)


def test_a_range_is_inserted_as_the_first_argument(tmp_path: Path) -> None:
    """The deviation had none."""
    before = case_file('@probe(\n    deviations=[\n        deviation(error="X"),\n    ],\n)')
    after = ended(before, Deviation(error="X"), "<0.6")
    assert 'deviation("jax<0.6", error="X")' in after
    assert read(after, tmp_path)["case"] == (Deviation(releases="<0.6", error="X"),)


@pytest.mark.parametrize(
    ("inner", "after"),
    [
        ("", '"jax<0.6"'),
        (
            "\n            # why\n            error='X',\n        ",
            "\n            # why\n            \"jax<0.6\",\n            error='X',\n        ",
        ),
    ],
)
def test_a_range_follows_the_layout_of_the_call(inner: str, after: str) -> None:
    """On one line or several."""
    text = "@probe(\n    deviations=[\n        deviation({}),\n    ],\n)"
    declared_now = Deviation(error="X" if inner else "")
    assert ended(case_file(text.format(inner)), declared_now, "<0.6") == case_file(
        text.format(after)
    )


def test_a_qualified_decorator_gets_a_qualified_deviation(tmp_path: Path) -> None:
    """No import is added."""
    text = f"from conformance import kit\n\n\n@kit.probe(){TAIL}"
    after = declared(text, VALUE)
    assert "        kit.deviation(\n" in after
    assert read(after, tmp_path) == {"case": (VALUE,)}


def test_a_deviation_of_some_parametrisations_names_them(tmp_path: Path) -> None:
    """Only the parameters named get it."""
    after = declared(case_file(DECORATORS["list"]), VALUE, ["b"])
    found = read(after, tmp_path)
    assert (VALUE in found["case[a]"], VALUE in found["case[b]"]) == (False, True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def case(env):\n    pass\n", "there is no case case"),
        ("@probe(\n", "cannot be read"),
        (case_file("@probe(devices=DEVICES)"), "expected a literal"),
    ],
)
def test_an_edit_that_is_impossible_is_an_error(text: str, words: str) -> None:
    """The message has one line."""
    with pytest.raises(UsageError, match=words):
        declared(text, SEEN)


def test_ending_an_undeclared_deviation_is_an_error() -> None:
    """The message names it."""
    with pytest.raises(UsageError, match="declares no such deviation"):
        ended(case_file(DECORATORS["list"]), SEEN, None)


NAMED = (
    'OLD = deviation("jax<0.4.35", error="X")\n\n\n'
    "@probe(devices=2, deviations=[OLD])\ndef sharing(env): ...\n\n\n"
)
"""A named deviation, and another case that shares it."""


def test_a_deviation_is_added_after_a_named_one(tmp_path: Path) -> None:
    """The constant is unchanged, and so is the case that shares it."""
    text = case_file(f"{NAMED}@probe(deviations=[OLD])").replace("deviation(", "deviation(", 1)
    new = declared(text, VALUE)
    found = read(new, tmp_path)
    assert [one.releases for one in found["case"]] == ["<0.4.35", "<0.5"]
    assert [one.releases for one in found["sharing"]] == ["<0.4.35"]
    assert NAMED in new


def test_a_named_deviation_of_one_case_gets_another_range(tmp_path: Path) -> None:
    """The constant itself changes, because no other case has it."""
    alone = NAMED.partition("@probe")[0]
    text = case_file(f"{alone}@probe(deviations=[OLD])")
    (old,) = read(text, tmp_path)["case"]
    assert ended(text, old, "<0.4.33") == text.replace("jax<0.4.35", "jax<0.4.33")


def test_a_named_deviation_that_ends_leaves_no_constant(tmp_path: Path) -> None:
    """Neither the constant nor the import that only it used."""
    alone = NAMED.partition("@probe")[0]
    text = case_file(f"{alone}@probe(deviations=[OLD])")
    (old,) = read(text, tmp_path)["case"]
    new = ended(text, old, None)
    assert "OLD" not in new
    assert "deviation" not in new
    assert read(new, tmp_path)["case"] == ()


@pytest.mark.parametrize(("releases", "left"), [("<0.4.33", ["<0.4.33"]), (None, [])])
def test_a_shared_deviation_changes_for_one_case_alone(
    releases: str | None, left: list[str], tmp_path: Path
) -> None:
    """The other case keeps the constant."""
    text = case_file(f"{NAMED}@probe(deviations=[OLD])")
    (old,) = read(text, tmp_path)["case"]
    new = ended(text, old, releases)
    found = read(new, tmp_path)
    assert [one.releases for one in found["case"]] == left
    assert found["sharing"] == (old,)
    assert NAMED in new


def test_a_list_that_is_a_constant_is_edited_manually(tmp_path: Path) -> None:
    """Which cases the edit is meant for cannot be known."""
    text = case_file('ALL = [deviation("jax<0.4.35")]\n\n\n@probe(deviations=ALL)')
    (old,) = read(text, tmp_path)["case"]
    with pytest.raises(UsageError, match="cannot be edited here"):
        declared(text, VALUE)
    with pytest.raises(UsageError, match="declares no such deviation"):
        ended(text, old, "<0.4.33")


def test_a_list_with_a_part_that_is_a_constant_is_edited_manually(tmp_path: Path) -> None:
    """An element of the list is not a deviation then."""
    text = case_file(
        'PART = [deviation("jax<0.4.35"), deviation("jax>=0.9")]\n\n\n@probe(deviations=[*PART])'
    )
    old = read(text, tmp_path)["case"][1]
    with pytest.raises(UsageError, match="cannot be edited here"):
        ended(text, old, ">=0.9,<0.10")


def test_keywords_that_are_defaults_stay(tmp_path: Path) -> None:
    """The case has them before and after the edit."""
    text = case_file("defaults(devices=4)\n\n\n@probe()").replace(
        "import Observed", "import Observed, defaults", 1
    )
    assert [one.releases for one in read(declared(text, VALUE), tmp_path)["case"]] == ["<0.5"]
