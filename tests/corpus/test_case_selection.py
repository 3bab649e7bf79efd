"""SELECT: what a name, a glob or a path means, and what is said when it means nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.corpus.case_selection import select_cases
from conformance.errors import NothingSelectedError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Write


@pytest.fixture
def corpus(write: Write, cases: Path) -> Path:
    """Two families: `maps/{one, two[a], two[b]}` and `loops/{three}`."""
    write(
        maps__first="@probe()\ndef one(env): ...\n",
        maps__second="@probe(params={'a': {}, 'b': {}})\ndef two(env): ...\n",
        loops__topic="@probe()\ndef three(env): ...\n",
    )
    return cases


@pytest.mark.parametrize(
    ("selects", "ids"),
    [
        ([], "loops/three maps/one maps/two[a] maps/two[b]"),
        (["loops"], "loops/three"),
        (["maps/one"], "maps/one"),
        (["maps/two"], "maps/two[a] maps/two[b]"),
        (["maps/two[b]"], "maps/two[b]"),
        (["maps/two[*]"], "maps/two[a] maps/two[b]"),
        (["*/t*"], "loops/three maps/two[a] maps/two[b]"),
        (["*[a]"], "maps/two[a]"),
        (["maps/?ne"], "maps/one"),
        (["maps/one", "loops", "maps/*"], "maps/one loops/three maps/two[a] maps/two[b]"),
    ],
)
def test_names_and_globs_select_cases(corpus: Path, selects: list[str], ids: str) -> None:
    """In the given order, each once; brackets are literal."""
    assert " ".join(case.id for case in select_cases(selects, corpus)) == ids


def test_paths_select_cases(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file or a folder, relative or absolute."""
    monkeypatch.chdir(corpus)
    for path in ("maps/second.py", "./maps/second.py", str(corpus / "maps" / "second.py")):
        assert {case.name for case in select_cases([path], corpus)} == {"two"}
    assert len(select_cases(["./maps"], corpus)) == 3
    assert len(select_cases([str(corpus)], corpus)) == 4


def test_a_folder_that_is_no_family_is_a_path(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name of a family remains a name."""
    own = tmp_path / "work" / "mine"
    (tmp_path / "work" / "maps").mkdir(parents=True)
    own.mkdir()
    (own / "t.py").write_text("@probe()\ndef here(env): ...\n")
    monkeypatch.chdir(tmp_path / "work")
    assert [case.id for case in select_cases(["mine"], corpus)] == ["mine/here"]
    assert len(select_cases(["maps"], corpus)) == 3


@pytest.mark.parametrize(
    ("select", "message"),
    [
        ("map", "did you mean maps?"),
        ("maps/on", "did you mean maps/one?"),
        ("three", "did you mean loops/three?"),
        ("maps/two[c]", r"did you mean maps/two\[[ab]\]?"),
        ("zzzzzz", "no case matches zzzzzz: `conformance list` lists the cases"),
        ("maps/zz*", "no case matches maps/zz*"),
    ],
)
def test_an_unknown_name_is_an_error(corpus: Path, select: str, message: str) -> None:
    """The message suggests the nearest name."""
    with pytest.raises(NothingSelectedError) as caught:
        select_cases([select], corpus)
    expected = message.replace("\\[[ab]\\]", "[a]")
    assert expected in str(caught.value).replace("[b]", "[a]")
    assert caught.value.exit_code == 3


def test_a_path_without_cases_is_an_error(corpus: Path, tmp_path: Path) -> None:
    """A missing file, a folder without cases, a file without marked functions."""
    with pytest.raises(UsageError, match=r"nowhere\.py does not exist"):
        select_cases(["nowhere.py"], corpus)
    (tmp_path / "empty").mkdir()
    with pytest.raises(NothingSelectedError, match="holds no case files"):
        select_cases([str(tmp_path / "empty")], corpus)
    plain = tmp_path / "plain.py"
    plain.write_text("x = 1\n")
    with pytest.raises(NothingSelectedError, match="no function is marked"):
        select_cases([str(plain)], corpus)


def test_an_empty_project_is_an_error(tmp_path: Path) -> None:
    """Selecting nothing is no success."""
    with pytest.raises(NothingSelectedError, match="holds no cases"):
        select_cases([], tmp_path)


def test_a_broken_file_of_another_family_is_ignored(corpus: Path) -> None:
    """A family can be edited while another is run."""
    (corpus / "maps" / "broken.py").write_text("def (")
    assert len(select_cases(["loops"], corpus)) == 1
    with pytest.raises(UsageError, match=r"broken\.py:1: syntax error"):
        select_cases(["maps"], corpus)
