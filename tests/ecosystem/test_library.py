"""Definitions of libraries, and those that are shipped."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.ecosystem.library import load_libraries, parse_library, select_libraries
from conformance.errors import UsageError
from tests.projects import ROOT

FOLDER = ROOT / "ecosystem"
FILE = Path("some-library.toml")
SOUND = "repository = 'owner/name'\nimports = ['some.module']\nprogram = 'def test(): pass'\n"


def test_name_is_that_of_the_file() -> None:
    """And everything else has a default but what a test needs."""
    library = parse_library(SOUND, FILE)
    assert (library.name, library.imports, library.tests) == (
        "some-library",
        ("some.module",),
        None,
    )


def test_hash_covers_the_definition_and_not_its_comments() -> None:
    """A comment does not make outcomes invalid."""
    library = parse_library(SOUND, FILE)
    assert parse_library(f"# why\n{SOUND}", FILE).hash == library.hash
    assert parse_library(f"{SOUND}requires = ['scipy']\n", FILE).hash != library.hash


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (SOUND.replace("owner/name", "name"), "repository: expected OWNER/NAME, got 'name'"),
        (SOUND.replace("'some.module'", ""), "imports: expected one module or more, got none"),
        (SOUND.replace("some.module", "a-b"), "imports: expected the name of a module, got 'a-b'"),
        (SOUND.replace("def test", "def"), "program: invalid syntax"),
        (f"{SOUND}odd = 1\n", "object contains unknown field `odd`"),
        (f"{SOUND}policies = ['oldest']\n", "invalid enum value 'oldest' - at `$.policies[0]`"),
        (f"{SOUND}requires = ['a b']\n", "requires: requirement 'a b': "),
        (f"{SOUND}[tests]\npath = '../up'\n", "tests.path: expected a folder of the source"),
        (f"{SOUND}[tests]\npath = 'a'\nsample = 0\n", "tests.sample: expected 1 or more, got 0"),
        (f"{SOUND}[tests]\npath = 'a'\nseconds = 0\n", "tests.seconds: expected more than 0"),
    ],
)
def test_fault_is_named_with_its_field(text: str, problem: str) -> None:
    """Where, what was found, what was expected."""
    with pytest.raises(UsageError) as error:
        parse_library(text, FILE)
    assert str(error.value).startswith(f"{FILE}: {problem}")


def test_fault_of_toml_has_its_line() -> None:
    """As TOML's parser reports it."""
    with pytest.raises(UsageError, match=r"some-library.toml: .* \(at line 2, column 11\)"):
        parse_library("repository = 'a/b'\nimports = x\n", FILE)


def test_unknown_library_has_the_nearest_name() -> None:
    """In any spelling of a distribution's name."""
    libraries = load_libraries(FOLDER)
    (haiku,) = select_libraries(libraries, ["Dm_Haiku"], FOLDER)
    assert haiku.name == "dm-haiku"
    with pytest.raises(UsageError, match=r"no library 'flux' \(did you mean 'flax'"):
        select_libraries(libraries, ["flux"], FOLDER)


def test_shipped_libraries_are_many_and_sound() -> None:
    """Each has a program of ours, with a test in it."""
    libraries = load_libraries(FOLDER)
    assert len(libraries) >= 40
    assert [one.name for one in libraries.values() if "def test_" not in one.program] == []
