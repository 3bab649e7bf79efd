"""`conformance ecosystem` and `conformance solve`, with stand-ins of jax and of libraries."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.projects import ROOT, write_project

from .library_index import NEW, OLD, make_definitions, serve_libraries

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.cell, pytest.mark.long]


@dataclass(frozen=True)
class World:
    """A project with libraries, and the index that has them."""

    project: Path
    cache: Path
    url: str

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command of `conformance` in the project."""
        return subprocess.Popen(
            [sys.executable, "-m", "conformance", *arguments], cwd=self.project,
            env={
                **os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200",
                "CONFORMANCE_INDEX_URL": self.url, "CONFORMANCE_CACHE": str(self.cache),
            },
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Run a command, and return its exit status, output and errors."""
        process = self.start(*arguments)
        out, err = process.communicate()
        return process.returncode, out, err

    def load(self, *arguments: str) -> Any:
        """Return the JSON of the recorded outcomes."""
        code, out, err = self.run("ecosystem", "--recorded", "--json", "-", *arguments)
        assert code == 0, err
        return json.loads(out)

    @property
    def results(self) -> Path:
        """The file of the records."""
        return self.project / "ecosystem" / "results.jsonl"


@pytest.fixture(scope="module")
def empty_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A project whose libraries were not tested."""
    folder = tmp_path_factory.mktemp("ecosystem")
    write_project(folder / "project", make_definitions())
    with serve_libraries(folder / "files") as index:
        yield World(folder / "project", folder / "cache", index.url)


@pytest.fixture(scope="module")
def world(empty_world: World) -> World:
    """A project whose libraries were tested on both releases."""
    code, out, err = empty_world.run("ecosystem", "--cell", OLD, "--cell", NEW)
    assert code == 1, out + err
    return empty_world


@pytest.fixture(scope="module")
def outcomes(world: World) -> dict[tuple[str, str, str], dict[str, Any]]:
    """The records by library, release and policy."""
    records = world.load()["records"]
    return {(one["library"], one["jax"], one["policy"]): one for one in records}


def test_library_that_works_is_ok(outcomes: dict[Any, Any]) -> None:
    """Its program and its own tests ran; of the source distribution nothing else is used."""
    record = outcomes["good", NEW, "release"]
    assert (record["outcome"], record["version"], record["tests"]) == ("ok", "1.0", 3)


def test_requirement_that_forbids_a_release_is_named(outcomes: dict[Any, Any]) -> None:
    """As the resolver says it."""
    record = outcomes["picky", NEW, "release"]
    assert record["outcome"] == "not installable"
    assert "picky>=1.0 depends on jax<0.7" in record["reason"]


def test_bounds_admit_an_older_version_that_breaks(outcomes: dict[Any, Any]) -> None:
    """A resolver goes back to a version without an upper bound."""
    record = outcomes["picky", NEW, "bounds"]
    assert (record["version"], record["outcome"]) == ("0.9", "import fails")


def test_failing_import_has_its_error_and_place(outcomes: dict[Any, Any]) -> None:
    """The last frame, in the library."""
    record = outcomes["stale", NEW, "release"]
    (failure,) = record["failures"]
    assert record["outcome"] == "import fails"
    assert "cannot import name 'abandoned' from 'jax'" in failure["error"]
    assert (failure["test"], failure["where"]) == ("import", "stale.py:1")
    assert outcomes["stale", OLD, "release"]["outcome"] == "ok"


def test_failing_tests_are_counted(outcomes: dict[Any, Any]) -> None:
    """One of two."""
    record = outcomes["wrong", NEW, "release"]
    assert (record["outcome"], record["tests"], len(record["failures"])) == ("tests fail", 2, 1)
    assert outcomes["wrong", OLD, "release"]["outcome"] == "ok"


def test_flaky_test_is_no_failure(outcomes: dict[Any, Any]) -> None:
    """Its attempts disagree: it is named, and does not make the library fail."""
    flaky = [one for key, one in outcomes.items() if key[0] == "moody" and one.get("flaky")]
    assert {one["outcome"] for one in flaky} == {"ok"}
    assert "test_mood" in flaky[0]["flaky"][0]


def test_library_without_a_version_on_the_release_date(outcomes: dict[Any, Any]) -> None:
    """It is neither a failure nor installed."""
    assert outcomes["late", OLD, "release"]["outcome"] == "no version"
    assert outcomes["late", NEW, "release"]["outcome"] == "ok"


def test_root_cause_has_all_its_libraries(world: World) -> None:
    """Two libraries import the same name."""
    causes = world.load()["causes"]
    assert causes[0]["name"] == "jax.abandoned"
    assert causes[0]["libraries"] == {"picky": ["0.9"], "stale": ["1.0"]}


def test_environments_are_removed(world: World) -> None:
    """Only the records are needed."""
    assert [*world.cache.glob("envs/*/bin/python")] == []


def test_second_run_tests_nothing_and_is_quiet(world: World) -> None:
    """Failures that are recorded are nothing new."""
    before = world.results.read_bytes()
    code, out, _ = world.run("ecosystem", "--cell", OLD, "--cell", NEW)
    assert (code, "good 1.0 on jax" in out) == (0, False)
    assert world.results.read_bytes() == before


def test_killed_run_goes_on_where_it_was(world: World) -> None:
    """What was shown was recorded, and is not tested again."""
    kept = world.results.read_text()
    world.results.unlink()
    process = world.start("ecosystem", "--cell", OLD, "--policy", "release", "-j", "1")
    assert process.stdout is not None
    shown = process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    library = shown.split()[0]
    assert library in world.results.read_text()
    code, out, err = world.run("ecosystem", "--cell", OLD, "--policy", "release")
    assert code == 0, err
    assert f"{library} 1.0 on jax" not in out
    tested = {json.loads(line)["library"] for line in world.results.read_text().splitlines()}
    assert tested == {"good", "late", "moody", "picky", "stale", "wrong"}
    world.results.write_text(kept)


def test_page_and_badges(world: World, tmp_path: Path) -> None:
    """The committed page has every library, and a badge its outcome on the newest release."""
    code, _, err = world.run("ecosystem", "--recorded", "--page", "--badges", str(tmp_path))
    assert code == 0, err
    page = (world.project / "reports" / "ecosystem.md").read_text()
    assert "| stale | 1.0 ok | 1.0 no import |" in page
    badge = (tmp_path / "library-stale.svg").read_text()
    assert f"jax {NEW}: import fails" in badge


def test_issue_of_a_library(world: World) -> None:
    """Its title has the library, the release and the error."""
    code, out, _ = world.run("ecosystem", "stale", "--recorded", "--issue")
    assert code == 0
    assert out.startswith(f"# stale 1.0 does not import on jax {NEW}: ImportError")
    assert f"uv pip install stale==1.0 jax=={NEW}" in out
    code, _, err = world.run("ecosystem", "good", "--recorded", "--issue")
    assert (code, "no recorded failure" in err) == (3, True)


def test_blame_prints_its_command(world: World) -> None:
    """The same version works on the older release; here the releases between them are missing."""
    code, out, err = world.run("ecosystem", "stale", "--recorded", "--blame")
    assert code == 0, err
    command = f"""conformance bisect --command 'python -c '"'"'import stale'"'"'' --good {OLD}"""
    assert f"{command} --bad {NEW} --with stale==1.0" in out
    assert "no culprit found: " in out


def test_solve_answers_with_what_was_tested_together(world: World) -> None:
    """Declared requirements admit a set that breaks; the answer is older, and works."""
    words = ("solve", "good", "picky", "--jax", f">={OLD},<={NEW}")
    code, out, err = world.run(*words)
    assert code == 0, err
    assert "declared requirements admit jax 0.7.2, good 1.0, picky 0.9, which breaks" in err
    assert out.startswith("# tested together on ")
    assert {"good==1.0", "picky==1.0", f"jax=={OLD}"} <= set(out.splitlines())
    code, again, err = world.run(*words, "--recorded", "--format", "uv-group")
    assert (code, "testing now" in err) == (0, False)
    assert "[dependency-groups]" in again
    assert '"picky==1.0",' in again


def test_solve_writes_a_pylock(world: World) -> None:
    """With a hash of each package."""
    code, out, err = world.run("solve", "good", "--jax", NEW, "--format", "pylock")
    assert code == 0, err
    assert 'name = "good"' in out
    assert "sha256" in out


def test_solve_without_an_answer(world: World) -> None:
    """No version of the library works on the release."""
    code, out, err = world.run("solve", "stale", "--jax", NEW)
    assert (code, out) == (1, "")
    assert f"no set of stale with jax {NEW} works" in err


def test_rotation_tests_some(world: World) -> None:
    """As many as wanted."""
    kept = world.results.read_text()
    world.results.unlink()
    code, _, err = world.run("ecosystem", "--cell", OLD, "--rotate", "2", "--policy", "release")
    assert code == 0, err
    assert len(world.results.read_text().splitlines()) == 2
    world.results.write_text(kept)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("repository = 'a/b'\n", "missing required field `imports`"),
        ("repository = 'a/b'\nimports = ['m']\n", "expected program or [tests], got neither"),
        ("repository = 'a/b'\nimports = 3\n", "expected `array`, got `int` - at `$.imports`"),
        ("repository = \n", "(at line 1, column 14)"),
    ],
)
def test_wrong_definition_is_one_error(world: World, text: str, problem: str) -> None:
    """With the file, and what was expected."""
    file = world.project / "ecosystem" / "odd.toml"
    file.write_text(text)
    try:
        code, _, err = world.run("ecosystem", "--recorded")
    finally:
        file.unlink()
    assert code == 2
    assert err.startswith(f"conformance: {file}: ") or "odd.toml" in err
    assert problem in err
    assert len(err.splitlines()) == 1


def test_unknown_library_is_an_error(world: World) -> None:
    """With the nearest name."""
    code, _, err = world.run("ecosystem", "stail", "--recorded")
    assert (code, "did you mean 'stale'" in err) == (2, True)
