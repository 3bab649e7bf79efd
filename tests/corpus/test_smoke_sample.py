"""The sample that a run without arguments takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.corpus.case_selection import FILE_NAME, select_sample
from conformance.corpus.discovery import discover, find_case_files
from conformance.errors import UsageError
from tests.projects import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.model.case import Case

    from .conftest import Write


@pytest.fixture
def found(write: Write, cases: Path) -> tuple[Case, ...]:
    """Two families: `maps/{one, two[a], two[b]}` and `loops/{three}`."""
    write(
        maps__topic="@probe()\ndef one(env): ...\n"
        "@probe(params={'a': {}, 'b': {}})\ndef two(env): ...\n",
        loops__topic="@probe()\ndef three(env): ...\n",
    )
    return discover(find_case_files(cases))


def ids(cases: tuple[Case, ...]) -> str:
    """Return the ids of some cases."""
    return " ".join(case.id for case in cases)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ('"loops", "maps/two[b]"', "loops/three maps/two[b]"),
        ('"maps/two"', "maps/two[a] maps/two[b]"),
        ('"*/t*"', "loops/three maps/two[a] maps/two[b]"),
        ("", ""),
    ],
)
def test_a_sample_names_families_ids_and_globs(
    found: tuple[Case, ...], cases: Path, names: str, expected: str
) -> None:
    """Families, ids and globs; the order is that of the corpus."""
    (cases / FILE_NAME).write_text(f"select = [{names}]\n")
    assert ids(select_sample(found, cases)) == expected


def test_without_a_file_the_sample_is_every_case(found: tuple[Case, ...], cases: Path) -> None:
    """A project of a few cases needs no sample."""
    assert select_sample(found, cases) == found


def test_cases_from_elsewhere_are_in_every_sample(
    found: tuple[Case, ...], cases: Path, tmp_path: Path
) -> None:
    """As the functions are that a project lists."""
    other = tmp_path / "other"
    other.mkdir()
    (other / FILE_NAME).write_text('select = ["maps"]\n')
    assert select_sample(found, other) == found
    assert cases != other


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('select = ["mapps"]', "no case matches mapps, expected a family, an id or a glob"),
        ("select = 3", "Expected `array`, got `int`.*expected select = \\[...\\]"),
        ('sample = ["maps"]', "unknown field `sample`"),
        ("select = [", "expected select = "),
    ],
)
def test_a_bad_file_is_an_error(
    found: tuple[Case, ...], cases: Path, text: str, message: str
) -> None:
    """It names the file, what was found and what was expected."""
    (cases / FILE_NAME).write_text(text)
    with pytest.raises(UsageError, match=message) as error:
        select_sample(found, cases)
    assert str(error.value).startswith(f"{cases / FILE_NAME}: ")


def test_the_sample_of_this_project() -> None:
    """Five families in full, and some of every other that the smoke matrix can run."""
    folder = ROOT / "cases"
    found = discover(find_case_files(folder))
    sample = select_sample(found, folder)
    whole = {"aot_placement", "array_api_device", "linearize_transpose", "nnx_vmap_while"}
    whole |= {"shard_map_while"}
    assert {case.id for case in found if case.family in whole} <= {case.id for case in sample}
    assert {case.family for case in found} - {case.family for case in sample} == {"multi_process"}
    assert len(sample) <= 400
