"""`conformance suite accept`: known failures from runs, in cells of two made-up releases."""

from __future__ import annotations

import site
import sys
import venv
from typing import TYPE_CHECKING

import pytest

from tests.holders import another_writer

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.model.record import Record
    from tests.projects import Ending, Project


SUITE = """\
title = "Mine"
url = "https://example.org/mine"
revision = "1234567890123456789012345678901234567890"
licence = "MIT"
paths = ["tests"]
"""
TESTS = """\
import jax
import pytest


def test_fine(): pass


def test_fixed():
    value = 3 * len(jax.__version__)
    assert jax.__version__ > "0.6", f"out={value}, but should be 4 [f({value})]"


def test_broken():
    assert False, "Argument 'x' missing"


if jax.__version__ > "0.6":
    def test_newer():
        assert jax.__version__ < "0.6", "newer"
"""
WRITTEN = """\
[generated]

[generated.releases.cpu]
"0.5.3" = ""
"0.6.2" = ""

[[deviation]]
releases = ""
platform = "cpu"
error = "AssertionError"
match = "^Argument 'x' missing"
reason = "Argument 'x' missing"
tests = [
    "tests/test_mine.py::test_broken",
]

[[deviation]]
releases = ">=0.6.2"
platform = "cpu"
error = "AssertionError"
match = "^newer"
reason = "newer"
tests = [
    "tests/test_mine.py::test_newer",
]

[[deviation]]
releases = "<0.6.2"
platform = "cpu"
error = "AssertionError"
match = '^out=.*, but should be .* \\[f\\(.*\\)\\]'
reason = "out=15, but should be 4 [f(15)]"
tests = [
    "tests/test_mine.py::test_fixed",
]
"""


def make_environment(folder: Path, release: str) -> str:
    """Make an environment of a fake jax, and return the selector of its cells."""
    venv.create(folder, symlinks=True)
    (packages,) = folder.glob("lib/*/site-packages")
    for name in ("jax", "jaxlib"):
        (packages / name).mkdir()
        (packages / name / "__init__.py").write_text(f'__version__ = "{release}"\n')
        dist_info = packages / f"{name}-{release}.dist-info"
        dist_info.mkdir()
        (dist_info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {release}\n"
        )
    # As site folders, so that what is installed there from a checkout is found as well.
    added = [f"import site; site.addsitedir({folder!r})" for folder in site.getsitepackages()]
    (packages / "own.pth").write_text("\n".join(added))
    return f"path:{folder}/bin/{'python' if sys.platform != 'win32' else 'python.exe'}"


pytestmark = pytest.mark.project({"suites/mine/suite.toml": SUITE})


@pytest.fixture
def project(project: Project, tmp_path: Path) -> Project:
    """A project with a named suite, and a checkout of it in the parent folder."""
    checkout = tmp_path / "checkout"
    project.write({f"{checkout}/tests/test_mine.py": TESTS, f"{checkout}/pytest.ini": "[pytest]\n"})
    return project


def run_suite(project: Project, *words: str) -> Ending:
    """Run the suite in some cells, with options."""
    cells = [word for text in words for word in (("--cell", text) if ":" in text else (text,))]
    return project.run("suite", "run", "mine", "--suite-path", "../checkout", *cells)


def read_failed(project: Project) -> list[Record]:
    """Return the records of the tests that failed in the newest run."""
    records = project.newest.read_records()
    return [record for record in records if record.outcome == "raised"]


@pytest.mark.long
def test_suite_accept_writes_and_updates_known_failures(project: Project, tmp_path: Path) -> None:
    """Accepted failures are known; reasons edited by hand remain; passing tests end."""
    old = make_environment(tmp_path / "old", "0.5.3")
    new = make_environment(tmp_path / "new", "0.6.2")
    file = project.path / "suites" / "mine" / "deviations.toml"
    assert run_suite(project, old, new).code == 1
    assert {record.attempts for record in read_failed(project)} == {2}
    with another_writer(file.parent, 2) as released:
        shown = project.run("suite", "accept", "mine", "--dry-run")
        assert not released.is_set()  # a dry run does not wait for the lock
    assert (shown.code, file.exists()) == (0, False)
    assert '+    "tests/test_mine.py::test_fixed",' in shown.out.splitlines()
    taken = project.run("suite", "accept", "mine", project.newest.path)
    assert (taken.code, taken.err) == (0, "")
    assert taken.out == "3 tests added, 0 changed, 0 ended; 3 known to fail, 3 deviations\n"
    assert file.read_text().partition("\n\n")[2] == WRITTEN
    written = file.read_bytes()
    # The accepted failures are known, and accepting again changes nothing.
    known = run_suite(project, old, new, "--fresh")
    assert known.code == 0, known.out
    # A known failure is not repeated.
    assert {(record.verdict, record.attempts) for record in read_failed(project)} == {("known", 1)}
    assert (
        project.run("suite", "accept", "mine")
        .out.splitlines()[1]
        .startswith("0 tests added, 0 changed, 0 ended")
    )
    assert file.read_bytes() == written
    # A reason edited by hand remains, and a test that passes now is removed.
    file.write_text(file.read_text().replace('reason = "newer"', 'reason = "the true reason"'))
    project.write({f"{tmp_path}/checkout/tests/test_mine.py": TESTS.replace("value =", "return #")})
    fixed = run_suite(project, old)
    assert (fixed.code, "fixed: the test passes" in fixed.out) == (1, True)
    assert (
        project.run("suite", "accept", "mine")
        .out.splitlines()[1]
        .startswith("0 tests added, 0 changed, 1 ended")
    )
    assert "the true reason" in file.read_text()
    assert "test_fixed" not in file.read_text()
    # The name of a missing test is an error before anything runs.
    project.write({f"{tmp_path}/checkout/tests/test_mine.py": TESTS.replace("_broken", "_renamed")})
    dead = run_suite(project, old)
    assert dead.code == 2
    assert dead.error.endswith(
        "deviations.toml:11: deviation 1 names tests/test_mine.py::test_broken: no cell collects "
        "it, expected an existing test; remove it, or write its new name"
    )


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (["none"], 2, "none: no such suite, expected one of mine"),
        (["mine"], 3, "holds no run of the whole of mine to its end, expected one; `conformance"),
    ],
)
def test_suite_accept_of_unknown_or_unrun_suite_is_refused(
    project: Project, arguments: list[str], code: int, error: str
) -> None:
    """With exit status 2 or 3."""
    ending = project.run("suite", "accept", *arguments)
    assert ending.code == code
    assert error in ending.error
