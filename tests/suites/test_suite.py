"""A requested suite, and its tests as cases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.errors import UsageError
from conformance.suites.running.collection import Collection, Problem, Test
from conformance.suites.suite import Suite, make_suite
from tests.suites.trials import write

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """A suite that is asked for in its project."""
    write(tmp_path, {"pytest.ini": "", "tests/test_one.py": ""})
    monkeypatch.chdir(tmp_path)
    words = ("tests", "-m", "not slow")
    return make_suite(words, timeout=5.0, wanted=("./mine", "einops>=1"), start=tmp_path)


def test_request_is_split_into_paths_and_arguments(suite: Suite, tmp_path: Path) -> None:
    """A node stays with its file."""
    assert (suite.paths, suite.arguments) == ((f"{tmp_path}/tests",), ("-m", "not slow"))
    node = make_suite(["tests/test_one.py::test_a[x/y]"], timeout=5.0, start=tmp_path)
    assert node.paths == (f"{tmp_path}/tests/test_one.py::test_a[x/y]",)
    assert node.name == "tests/test_one.py::test_a[x/y]"
    for words, said in ((["tests", "nothing"], "nothing: no such file"), (["-k", "x"], "no suite")):
        with pytest.raises(UsageError, match=said):
            make_suite(words, timeout=5.0, start=tmp_path)


def test_case_of_a_test(suite: Suite, tmp_path: Path) -> None:
    """Its node, its location, and the arguments that rerun it."""
    file = f"{tmp_path}/tests/test_one.py"
    tests = (Test(name="tests/test_one.py::test_a[b c]", file=file, line=7),)
    (case,) = suite.make_cases([Collection(root=str(tmp_path), tests=tests)])
    assert (case.id, case.family, case.kind) == ("tests/test_one.py::test_a[b c]", "tests", "test")
    assert (str(case.file), case.line, case.timeout) == ("tests/test_one.py", 7, 5.0)
    assert case.arguments == (
        "'tests/test_one.py::test_a[b c]' --with ./mine --with 'einops>=1' -- -m 'not slow'"
    )


def test_family_of_a_test_in_the_root(suite: Suite) -> None:
    """The name of the root folder."""
    tests = (Test(name="test_one.py::test_a", file="/away/mine/test_one.py"),)
    (case,) = suite.make_cases([Collection(root="/away/mine", tests=tests)])
    assert (case.id, case.family) == ("mine/test_one.py::test_a", "mine")
    assert case.name == "test_one.py::test_a"
    assert str(case.file) == "/away/mine/test_one.py"


def test_cases_of_several_cells(suite: Suite) -> None:
    """The union; a module that no cell can import is a case."""
    a, b = (Test(name=f"tests/test_one.py::test_{name}") for name in "ab")
    everywhere = Problem(node="tests/test_two.py", broken=True, type="ImportError")
    here = Problem(node="tests/test_one.py", broken=True, type="ImportError")
    left_out = Problem(node="tests/test_three.py", broken=False, reason="not here")
    found = [
        Collection(root="/p", tests=(a,), problems=(everywhere, left_out)),
        Collection(root="/p", tests=(a, b), problems=(everywhere,)),
        Collection(root="/p", problems=(here, everywhere)),
        Collection(failure="KeyError: 'this'"),
    ]
    names = [case.id for case in suite.make_cases(found)]
    assert names == ["tests/test_one.py::test_a", "tests/test_one.py::test_b", "tests/test_two.py"]


def test_problem_covers_the_tests_below_its_node() -> None:
    """Not tests whose names only begin alike."""
    of_file = Problem(node="tests/test_a.py", broken=True)
    assert of_file.covers("tests/test_a.py::test_one[x::y]")
    assert not of_file.covers("tests/test_a.py2::test_one")
    assert Problem(node="tests/sub", broken=True).covers("tests/sub/test_b.py::test_one")
    assert Problem(node=".", broken=True).covers("tests/test_a.py::test_one")
