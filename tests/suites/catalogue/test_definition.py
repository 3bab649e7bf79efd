"""Definitions of named suites."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.errors import UsageError
from conformance.suites.catalogue.definition import load_suite
from tests.suites.repositories import DEFINITION
from tests.suites.trials import write

TOML = DEFINITION.format(url="https://host/mini", revision="a" * 40)


def find_problem(folder: Path, text: str) -> str:
    """Define a suite, and return the error message."""
    write(folder, {"mini/suite.toml": text})
    with pytest.raises(UsageError) as caught:
        load_suite("mini", folder)
    return str(caught.value)


def test_definition_is_loaded_by_the_name_of_its_folder(tmp_path: Path) -> None:
    """With all its fields."""
    write(tmp_path, {"mini/suite.toml": TOML})
    suite = load_suite("mini", tmp_path)
    assert (suite.name, suite.folder) == ("mini", tmp_path / "mini")
    assert suite.definition.paths == ("mini_tests",)
    with pytest.raises(UsageError, match="other: no such suite, expected one of mini"):
        load_suite("other", tmp_path)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("paths", "path", "unknown field `path`"),
        ('title = "Mini"', "", "missing required field `title`"),
        ("timeout = 30", 'timeout = "30"', "Expected `float`, got `str` - at `$.timeout`"),
        ("timeout = 30", "timeout = 0", "timeout: expected seconds, more than 0, got 0"),
        ("examples = 5", "examples = 0", "examples: expected 1 or more, got 0"),
        ("a" * 40, "main", "revision: expected a commit, all 40 digits of it, got 'main'"),
        ('["mini_tests"]', "[]", "paths: expected files or folders of tests, got none"),
        ('["mini_tests"]', '["../x"]', "paths: expected paths below the checkout, got '../x'"),
        ('claim = "jax:__version__"', "", "standards: expected standard and claim with it"),
        ("mini_tests:version", "mini_tests", "standard: expected module:attribute"),
        ("requires = []", 'requires = ["not a name"]', "requires: requirement 'not a name'"),
        ("title =", "title", "mini/suite.toml: "),
    ],
)  # fmt: skip
def test_invalid_definition_names_file_and_field(
    tmp_path: Path, before: str, after: str, said: str
) -> None:
    """One usage error for every kind of mistake."""
    assert before in TOML
    problem = find_problem(tmp_path, TOML.replace(before, after))
    assert problem.startswith(f"{tmp_path}/mini/suite.toml: ")
    assert said in problem


def test_committed_definitions_are_valid() -> None:
    """Of every suite of this project."""
    folder = Path(__file__).resolve().parents[3] / "suites"
    found = [load_suite(path.parent.name, folder) for path in folder.glob("*/suite.toml")]
    assert {suite.name for suite in found} >= {"array-api-tests"}
