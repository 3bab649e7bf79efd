"""Requests for named suites."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

from conformance.errors import UsageError
from conformance.suites.catalogue.checkouts import Checkout
from conformance.suites.files import hash_folder
from conformance.suites.running.collection import Collection, Test
from conformance.suites.suite import Examples, Suite, make_suite
from tests.suites.repositories import DEFINITION, TESTS
from tests.suites.trials import write

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.suites.catalogue.definition import NamedSuite

TEST = "mini_tests/test_sums.py::test_a[b c]"


@dataclass(frozen=True)
class Home:
    """Suites in a folder, with a checkout."""

    folder: Path
    files: Path
    own: bool = False

    def checkout(self, suite: NamedSuite) -> Checkout:
        """Return the checkout."""
        return Checkout(
            folder=self.files, revision=suite.definition.revision, own=self.own,
            content=hash_folder(self.files),
        )  # fmt: skip


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A project with two suites, in which a user works."""
    toml = DEFINITION.format(url="https://host/mini", revision="a" * 40)
    (tmp_path / "work").mkdir()
    write(tmp_path, {"suites/mini/suite.toml": toml})
    write(tmp_path, {"suites/maxi/suite.toml": toml.replace("mini_tests", "maxi_tests")})
    monkeypatch.chdir(tmp_path / "work")
    return Home(folder=tmp_path / "suites", files=write(tmp_path / "files", TESTS))


def request_suite(home: Home, *words: str, **more: Any) -> Suite:
    """Return the requested suite."""
    return make_suite(words, start=home.folder.parent / "work", home=home, **more)


def one_case(suite: Suite) -> Any:
    """Return a test of a suite as a case."""
    test = Test(name=TEST, file=f"{suite.folder}/{TEST.partition('::')[0]}", line=3)
    (case,) = suite.make_cases([Collection(root=str(suite.folder), tests=(test,))])
    return case


def test_whole_suite_has_the_arguments_of_its_definition(home: Home) -> None:
    """Without further options."""
    suite = request_suite(home, "mini")
    assert suite.paths == (f"{home.files}/mini_tests",)
    assert suite.arguments == ("--max-examples", "5")
    assert (suite.timeout, suite.definition.environment) == (30.0, {"MINI": "yes"})
    assert (suite.folder, suite.root, suite.complete) == (home.files, home.files, True)
    told = suite.describe()
    assert (told.name, told.title, told.revision) == ("mini", "Mini", "a" * 40)
    assert told.settings == {"max_examples": 5, "standard": "claimed"}
    case = one_case(suite)
    assert (case.id, case.name, case.family) == (TEST, TEST, "mini_tests")
    assert shlex.split(case.arguments) == [f"mini::{TEST}"]


@pytest.mark.parametrize("word", [f"mini::{TEST}", TEST])
def test_single_test_is_requested_by_node_or_id(home: Home, word: str) -> None:
    """The id is that of the reports."""
    suite = request_suite(home, word)
    assert (suite.name, suite.complete) == ("mini", False)
    assert suite.paths == (f"{home.files}/{TEST}",)


def test_options_override_the_definition(home: Home) -> None:
    """They are repeated in the command for a single test."""
    home = replace(home, own=True)
    how = Examples(number=7, seed=1, shrink=True)
    words = ("mini::mini_tests", "-k", "sum")
    suite = request_suite(home, *words, timeout=3.0, wanted=["./x"], examples=how, standard="2")
    assert suite.arguments == ("--max-examples", "7", "-k", "sum")
    assert suite.examples == Examples(number=None, seed=1, shrink=True)
    assert (suite.timeout, suite.complete) == (3.0, False)
    assert suite.settings == {"max_examples": 7, "seed": 1, "shrink": True, "standard": "2"}
    again = shlex.split(one_case(suite).arguments)
    assert again == [
        f"mini::{TEST}", "--with", "./x", "--max-examples", "7", "--seed", "1", "--shrink",
        "--standard", "2", "--suite-path", str(home.files), "--", "-k", "sum",
    ]  # fmt: skip


def test_versions_of_a_standard_have_distinct_tests(home: Home) -> None:
    """Each can be rerun by its id."""
    each = request_suite(home, "mini", standard="all").split_standards()
    assert len({suite.hash for suite in each}) == len(each)
    case = one_case(each[1])
    assert (case.id, case.name) == (f"mini@2/{TEST}", TEST)
    assert shlex.split(case.arguments) == [f"mini::{TEST}", "--standard", "2"]
    again = request_suite(home, case.id)
    assert again.paths == (f"{home.files}/{TEST}",)
    assert again.settings["standard"] == "2"


def test_hash_depends_on_content_and_options(home: Home, tmp_path: Path) -> None:
    """Not on the folder of the checkout."""
    whole = request_suite(home, "mini")
    other = replace(home, files=write(tmp_path / "other", TESTS), own=True)
    assert request_suite(other, "mini").hash == whole.hash
    assert request_suite(home, f"mini::{TEST}").hash == whole.hash
    differ = {
        whole.hash,
        request_suite(home, "mini", examples=Examples(number=7)).hash,
        request_suite(home, "mini", examples=Examples(shrink=True)).hash,
        request_suite(home, "mini", standard="2").hash,
        request_suite(home, "mini", "-x").hash,
    }
    write(other.files, {"spec/data.json": "[]"})
    toml = home.folder / "mini" / "suite.toml"
    differ.add(request_suite(other, "mini").hash)
    toml.write_text(toml.read_text().replace('MINI = "yes"', 'MINI = "no"'))
    differ.add(request_suite(home, "mini").hash)
    assert len(differ) == 7


def test_existing_path_is_no_name_of_a_suite(home: Home) -> None:
    """Also if a suite has that name."""
    write(home.folder.parent / "work", {"mini/test_a.py": "", "mini_tests/test_sums.py": ""})
    assert request_suite(home, "mini").named is None
    assert request_suite(home, TEST).named is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["mimi"], "no suite of that name (did you mean 'mini'"),
        (["mini/"], "mini/: no such file or folder"),
        (["test_a.py::test_b"], "test_a.py: no such file or folder, expected the path of tests"),
        (["mini", "maxi"], "maxi, mini: expected paths alone, or the name of one suite"),
        (["mini", "here"], "mini, here: expected paths alone"),
        (["mini::mini_tests/no.py"], "has no mini_tests/no.py, expected the id of a test"),
        (["mini@2/x", "mini@3/x"], "tests of 2 versions, expected those of one"),
        (["mini@9/mini_tests"], "--standard 9: mini knows no such version"),
    ],
)
def test_unknown_suite_is_a_usage_error(home: Home, words: list[str], said: str) -> None:
    """The message lists the names of the suites."""
    write(home.folder.parent / "work", {"here/test_a.py": ""})
    with pytest.raises(UsageError) as caught:
        request_suite(home, *words)
    assert said in str(caught.value)


def test_standard_needs_a_named_suite(home: Home) -> None:
    """A folder of tests has none."""
    write(home.folder.parent / "work", {"here/test_a.py": ""})
    with pytest.raises(UsageError, match="--standard 2: expected with the name of a suite"):
        request_suite(home, "here", standard="2")
