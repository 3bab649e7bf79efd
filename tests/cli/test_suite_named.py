"""`conformance suite list`, `fetch` and `run` of named suites: real git, real cells."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.projects import CELL
from tests.suites.repositories import NAME, TESTS, Repositories, committed, repositories

if TYPE_CHECKING:
    from tests.projects import Project

    from .conftest import MakeProject

WRITES = """\
from pathlib import Path


def test_writes():
    Path(__file__).with_name("left.txt").write_text("x")
    (Path(__file__).parents[1] / "pytest.ini").write_text("[pytest]\\naddopts = -k nothing\\n")
"""
REAL = "CONFORMANCE_ARRAY_API_TESTS"


@pytest.fixture
def made(tmp_path: Path) -> Repositories:
    """The repository of a suite, one of whose tests writes into its own folder."""
    return repositories(tmp_path / "made", files={**TESTS, "mini_tests/test_writes.py": WRITES})


@pytest.fixture
def project(
    new_project: MakeProject, made: Repositories, tmp_path: Path, shared_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Project:  # fmt: skip
    """A project that defines the suite, and a cache without its checkout."""
    cache = tmp_path / "cache"
    cache.mkdir()
    for path in shared_cache.iterdir():
        (cache / path.name).symlink_to(path)
    monkeypatch.setenv("CONFORMANCE_CACHE", str(cache))
    toml = made.toml.replace('["1", "2", "3"]', '["2022.12", "2024.12", "2999.12"]')
    toml = toml.replace("jax:__version__", "numpy:__array_api_version__")
    return new_project({f"suites/{NAME}/suite.toml": toml})


def test_suite_list_shows_licence_and_checkout(project: Project, made: Repositories) -> None:
    """Fetching prints the licence, too."""
    (before,) = project.run("suite", "list", "--json", "-").json
    assert (before["name"], before["licence"], before["fetched"]) == (NAME, "MIT", False)
    ending = project.run("suite", "fetch", NAME)
    assert (ending.code, ending.out.splitlines()) == (
        0,
        [f"{NAME} {made.revision} is in {before['folder']}", f"licence: MIT, from {made.url}"],
    )
    assert ending.error == f"fetching {NAME} {made.revision[:12]} from {made.url}"
    assert f"{NAME}  {made.revision[:12]}  MIT  fetched" in project.run("suite", "list").out
    assert Path(before["folder"], "spec", "data.json").is_file()


def test_cache_prune_removes_unpinned_checkouts(
    project: Project, made: Repositories, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pinned checkout remains."""
    monkeypatch.setenv("CONFORMANCE_CACHE", str(tmp_path / "other-cache"))
    later = committed(made.folder / "suite", {"later.py": ""})
    for revision in (made.revision, later):
        assert project.run("suite", "fetch", NAME, "--revision", revision).code == 0
    pruned = project.run("cache", "prune", "--json", "-").json
    assert pruned["checkouts"] == [
        {"checkout": f"{NAME}/{later}", "reason": "no suite is pinned to it", "kept": ""}
    ]
    (left,) = (tmp_path / "other-cache" / "checkouts" / NAME).glob("*/")
    assert left.name == made.revision
    assert project.run("cache", "show", "--json", "-").json["checkouts"] > 0


def test_failed_fetch_leaves_no_partial_checkout(project: Project) -> None:
    """One error line each."""

    def fetch_refused(*arguments: str) -> tuple[int, str]:
        ending = project.run("suite", "fetch", *arguments)
        return ending.code, ending.err.splitlines()[-1]

    assert fetch_refused("mimi") == (2, f"conformance: mimi: no such suite, expected one of {NAME}")
    code, error = fetch_refused(NAME, "--revision", "main")
    assert (code, "--revision: expected a commit, all 40 hexadecimal" in error) == (2, True)
    code, error = fetch_refused(NAME, "--revision", "0" * 40)
    assert (code, f"has no commit {'0' * 40}" in error) == (2, True)
    code, error = fetch_refused(NAME, "--url", "https://nowhere.invalid/x")
    assert (code, "cannot be fetched: git fetch: " in error) == (4, True)
    assert fetch_refused(NAME, "--url", "-x")[0] == 2
    assert [one["fetched"] for one in project.run("suite", "list", "--json", "-").json] == [False]
    project.write({f"suites/{NAME}/suite.toml": "title = 1\n"})
    code, error = fetch_refused(NAME)
    assert (code, "suite.toml: Expected `str`, got `int` - at `$.title`" in error) == (2, True)


@pytest.mark.long
@pytest.mark.cell
def test_named_suite_is_fetched_once_and_reset_after_its_run(
    project: Project, made: Repositories
) -> None:
    """Later runs work offline; files that tests leave in the checkout are removed."""
    ending = project.run("suite", "run", NAME, "--cell", "0.6.2")
    assert (ending.code, f"{CELL}  4 passed" in ending.out) == (0, True), ending
    fetching, left = ending.err.splitlines()
    assert f"fetching {NAME} {made.revision[:12]} from {made.url}" in fetching
    assert "not as it was before the run: added mini_tests/left.txt, changed pytest.ini" in left
    assert left.endswith("; that is undone")
    info = project.newest.read_run()
    assert info.suite is not None
    assert (info.suite.name, info.suite.revision, info.suite.complete) == (
        NAME, made.revision, True,
    )  # fmt: skip
    assert info.suite.settings == {"max_examples": 5, "standard": "claimed"}
    assert info.cases["mini_tests/test_sums.py::test_sum"].file == "mini_tests/test_sums.py"
    (cell,) = info.cells
    assert (cell.versions["pytest"] != "", len(cell.layer) > 0) == (True, True)
    assert info.identities[CELL]["facts"] == {"standard": "2024.12"}
    shutil.rmtree(made.folder)
    again = project.run("suite", "run", NAME, "--cell", "0.6.2", "--json", "-")
    assert [one["cached"] for one in again.json["results"]] == [True] * 4
    assert "fetching" not in again.err


@pytest.mark.long
@pytest.mark.cell
def test_standard_all_runs_every_version_that_the_release_claims(project: Project) -> None:
    """A newer version is refused."""
    node = f"{NAME}::mini_tests/test_sums.py::test_version"
    ending = project.run("suite", "run", node, "--cell", "0.6.2", "--standard", "all")
    assert (ending.code, f"{CELL}  2 passed" in ending.out) == (0, True), ending
    assert list(project.newest.read_run().cases) == [
        f"{NAME}@{version}/mini_tests/test_sums.py::test_version"
        for version in ("2022.12", "2024.12")
    ]
    ending = project.run("suite", "run", node, "--cell", "0.6.2", "--standard", "2999.12")
    assert ending.code == 3
    assert "not held against 2999.12 of the standard: its release claims 2024.12" in ending.err


@pytest.mark.cell
@pytest.mark.skipif(REAL not in os.environ, reason="needs a checkout of array-api-tests")
def test_array_api_tests_run_completely(new_project: MakeProject) -> None:
    """From a local checkout; every test has an outcome."""
    root = Path(__file__).resolve().parents[2]
    files = {str(p.relative_to(root)): p.read_text() for p in (root / "suites").rglob("*.toml")}
    project = new_project(files)
    where = ("--suite-path", os.environ[REAL], "--cell", "0.6.2")
    ending = project.run("suite", "run", "array-api-tests", *where, "--json", "-")
    counts = ending.json["counts"]
    assert ending.code in {0, 1}
    assert sum(counts.values()) > 1_300
    assert counts["match"] > 1_000
    assert counts.get("infra", 0) == 0
    info = project.newest.read_run()
    assert info.suite is not None
    assert info.suite.complete
