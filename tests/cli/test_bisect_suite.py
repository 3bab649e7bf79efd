"""`conformance bisect` of tests of suites, and targets that look like them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.app.suites.target import is_test_name

if TYPE_CHECKING:
    from .conftest import MakeProject

MAP = """\
import jax
import pytest


@pytest.mark.parametrize("number", [1, 2])
def test_each(number): pass


class TestMap:
    def test_it(self):
        from jax import shard_map
"""


@pytest.mark.parametrize(
    ("target", "when", "fact", "is_one"),
    [
        ("tests/test_map.py::test_it", None, "", True),
        ("tests/test_map.py::test_it[a b]", "ending", "", True),
        ("array-api-tests::array_api_tests/test_fft.py::test_fft[a b]", None, "", True),
        ("pytest tests/test_map.py::test_it", None, "", False),
        ("tests/test_map.py::test_it", "output", "", False),
        ("tests/test_map.py::test_it", None, "collectives.all-gather", False),
        ("array-api-tests::array_api_tests/test_fft.py::test_fft", "output", "", True),
        ("report.py", None, "", False),
        ("family/case[2]", None, "", False),
        ("my_package:loss", None, "", False),
    ],
)
def test_is_test_name_recognises_node_ids(
    target: str, when: str | None, fact: str, *, is_one: bool
) -> None:
    """Output and facts are those of a whole process, so such a target runs as a script."""
    assert is_test_name(target, when, fact) is is_one


@pytest.mark.long
@pytest.mark.cell
def test_bisect_finds_the_first_good_release_of_a_suite_test(new_project: MakeProject) -> None:
    """Its conftest files are used; a node id must name exactly one test."""
    project = new_project({
        "suite/conftest.py": "import pytest\n\n@pytest.fixture(autouse=True)\ndef _(): yield\n",
        "suite/test_map.py": MAP,
        "pytest.ini": "[pytest]\naddopts = --strict-markers\n",
    })  # fmt: skip
    node = "suite/test_map.py::TestMap::test_it"
    ends = ("--good", "0.6.2", "--bad", "0.6.0", "--find", "fix")
    ending = project.run("bisect", node, *ends, "--json", "-")
    assert ending.code == 0, ending
    answer = ending.json
    assert (answer["last_good"], answer["first_bad"]) == ("0.6.1", "0.6.0")
    bad = {one["signature"] for one in answer["steps"] if one["verdict"] == "bad"}
    assert bad == {"ImportError: cannot import name 'shard_map' from 'jax' (__init__.py)"}
    several = project.run("bisect", "suite/test_map.py::test_each", *ends)
    assert several.code == 2
    assert (
        "2 tests, suite/test_map.py::test_each[1], suite/test_map.py::test_each[2]; expected"
        in (several.error)
    )
    gone = project.run("bisect", "suite/gone.py::test_it", *ends)
    assert (gone.code, gone.error.startswith("suite/gone.py: no such file or folder")) == (2, True)
