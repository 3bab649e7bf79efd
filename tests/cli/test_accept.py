"""`conformance accept`: goldens from a run, and partial, repeated and refused accepts."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.projects import CELL, GOOD, HEAD, ROOT, case

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import MakeProject

pytestmark = pytest.mark.cell
TOPIC = "cases/fam/topic.py"
VALUE = case("return np.float32([1, 2])", name="value")
OTHER = VALUE.replace("[1, 2]", "[1, 3]")


def test_accept_then_run_is_green(new_project: MakeProject) -> None:
    """New cases match after accepting; accepting again changes nothing."""
    project = new_project({TOPIC: GOOD})
    assert project.run("run").code == 0
    assert project.run("accept").out == "2 added, 0 changed, 0 extended, 0 unchanged\n"
    code, records = project.results()
    assert code == 0
    assert {record.verdict for record in records.values()} == {"match"}
    assert project.run("accept").out == "0 added, 0 changed, 0 extended, 2 unchanged\n"


def test_new_case_without_reference_exits_1_until_accepted(new_project: MakeProject) -> None:
    """Without a reference or a golden, nothing confirms the value."""
    project = new_project({TOPIC: VALUE})
    ending = project.run("run")
    assert ending.code == 1
    assert "no golden yet: conformance accept fam/value" in ending.out
    assert project.run("accept").code == 0
    assert project.run("run").code == 0


def test_changed_value_prints_the_accept_command(new_project: MakeProject) -> None:
    """Exit 1 with the leaf, both values and the command; after that command the run exits 0."""
    project = new_project({TOPIC: VALUE})
    project.run("run")
    project.run("accept")
    project.write({TOPIC: OTHER})
    code, records = project.results()
    assert (code, records["value"].verdict, records["value"].attempts) == (1, "changed", 2)
    (reason,) = records["value"].reasons
    assert "out" in reason
    assert reason.endswith("; if intended: conformance accept fam/value")
    assert project.run("accept", "fam/value").out.startswith("0 added, 1 changed")
    assert project.run("run", "--resume").code == 0
    assert project.run("run").code == 0


def test_accept_dry_run_writes_nothing(new_project: MakeProject) -> None:
    """The changes are printed as text or as JSON."""
    project = new_project({TOPIC: GOOD})
    project.run("run")
    assert project.run("accept", "--dry-run").out.startswith("2 added")
    data = project.run("accept", "--dry-run", "--json", "-").json
    assert [(e["case"], e["release"], e["change"]) for e in data["entries"]] == [
        ("fam/one", "0.6.2", "added"),
        ("fam/two", "0.6.2", "added"),
    ]
    assert (data["refused"], data["conflicts"]) == ([], [])
    assert not (project.path / "cases/fam/golden").exists()


def test_accepting_a_run_that_is_not_finished_says_so(new_project: MakeProject) -> None:
    """Its results become goldens all the same."""
    project = new_project({TOPIC: GOOD})
    project.run("run", "--run", "here")
    file = project.path / "here" / "run.json"
    file.write_text(re.sub(r'"finished": "[^"]*"', '"finished": ""', file.read_text()))
    ending = project.run("accept", "--run", "here")
    assert ending.out.startswith("2 added")
    assert ending.error == "run here is not finished: jobs without a result keep their goldens"
    project.run("run", "--resume", "--run", "here")
    assert project.run("accept", "--run", "here").err == ""


@pytest.mark.long
def test_accepting_one_case_keeps_other_goldens(new_project: MakeProject) -> None:
    """Accepting one case leaves the golden files of all others unchanged."""
    project = new_project({TOPIC: GOOD, "cases/fam/more.py": VALUE})
    project.run("run")
    project.run("accept")
    kept = {f: f.read_bytes() for f in project.path.glob("cases/fam/golden/topic/*/*")}
    project.write({"cases/fam/more.py": OTHER})
    project.run("run", "fam/value")
    assert project.run("accept", "fam/value").code == 0
    assert {f: f.read_bytes() for f in project.path.glob("cases/fam/golden/topic/*/*")} == kept
    assert project.run("run").code == 0


def test_edited_case_blocks_only_its_own_accept(new_project: MakeProject) -> None:
    """A case that was edited after the run cannot be accepted, but the others can."""
    project = new_project({TOPIC: GOOD, "cases/fam/more.py": VALUE})
    project.run("run")
    project.write({"cases/fam/more.py": OTHER})
    ending = project.run("accept")
    assert ending.code == 2
    assert "more.py changed since " in ending.error
    assert ending.error.endswith("run fam/value again first")
    assert project.run("accept", "fam/one").code == 0


def test_accept_is_refused_in_ci(new_project: MakeProject, monkeypatch: pytest.MonkeyPatch) -> None:
    """Goldens are never written in CI."""
    project = new_project({TOPIC: GOOD})
    project.run("run")
    monkeypatch.setenv("CI", "true")
    ending = project.run("accept")
    assert (ending.code, ending.error) == (
        2,
        "goldens are never written in CI (CI is set); accept them locally",
    )
    assert not (project.path / "cases/fam/golden").exists()


def test_accept_gone_removes_goldens_of_deleted_cases(new_project: MakeProject) -> None:
    """Goldens of deleted cases remain until `--gone` removes their folders."""
    project = new_project({TOPIC: GOOD, "cases/fam/more.py": VALUE})
    project.run("run")
    project.run("accept")
    kept = {f: f.read_bytes() for f in project.path.glob("cases/fam/golden/topic/*/*")}
    project.write({"cases/fam/more.py": VALUE.replace("value", "renamed")})
    assert project.run("accept", "--gone", "--dry-run").out == (
        "fam/golden/more/value\n1 to remove\n"
    )
    assert project.run("accept", "--gone", "--json", "-").json == {
        "removed": ["fam/golden/more/value"]
    }
    assert not (project.path / "cases/fam/golden/more").exists()
    assert {f: f.read_bytes() for f in project.path.glob("cases/fam/golden/topic/*/*")} == kept
    assert project.run("accept", "--gone").out == "0 removed\n"


def test_accept_gone_removes_nothing_if_a_case_file_is_broken(new_project: MakeProject) -> None:
    """The cases of a broken file are unknown, so no golden counts as orphaned."""
    project = new_project({TOPIC: GOOD, "cases/fam/more.py": VALUE})
    project.run("run")
    project.run("accept")
    project.write({"cases/fam/more.py": "def ("})
    ending = project.run("accept", "--gone")
    assert ending.code == 2
    assert "more.py" in ending.error
    assert (project.path / "cases/fam/golden/more/value/spans.toml").exists()


def test_accept_gone_rejects_a_selection(new_project: MakeProject) -> None:
    """`--gone` is about the folder of cases, not about a run."""
    project = new_project({TOPIC: GOOD})
    ending = project.run("accept", "--gone", "fam/one")
    assert ending.code == 2
    assert "no SELECT, --run or --cell" in ending.error


BAD = {
    "cases/fam/topic.py": GOOD,
    "cases/fam/deviates.py": case("return Observed(1, reference=2)", name="deviates"),
    "cases/fam/crashes.py": case("import os\nos.abort()", name="crashes"),
    "cases/fam/empty.py": case("return None", name="empty"),
}


def test_accept_refuses_deviating_and_crashed_jobs(new_project: MakeProject) -> None:
    """Deviations, crashes and invalid cases are listed with exit 1; the rest is accepted."""
    project = new_project(BAD)
    assert project.run("run").code == 1
    ending = project.run("accept")
    assert ending.code == 1
    refused = [line for line in ending.out.splitlines() if line.startswith("not accepted: ")]
    assert [line.split()[2] for line in refused] == ["fam/crashes", "fam/deviates", "fam/empty"]
    assert all(f"on {CELL}: " in line for line in refused)
    assert "captured nothing" in refused[2]
    assert ending.out.splitlines()[-1].startswith("2 added")


def test_accept_without_a_run_exits_2(new_project: MakeProject) -> None:
    """The message names the command that makes a run."""
    project = new_project({TOPIC: GOOD})
    ending = project.run("accept")
    assert ending.code == 2
    assert ending.error.endswith("runs holds no run, expected one; `conformance run` makes it")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fam/on"], "holds no record of fam/on (did you mean 'fam/one'"),
        (["--cell", "jax0.5.3-py311-cpu8"], "holds no record on jax0.5.3-py311-cpu8, expected"),
    ],
)
def test_accept_of_a_case_or_cell_not_in_the_run_exits_3(
    new_project: MakeProject, arguments: list[str], words: str
) -> None:
    """The message proposes the nearest name."""
    project = new_project({TOPIC: GOOD})
    project.run("run")
    ending = project.run("accept", *arguments)
    assert ending.code == 3
    assert words in ending.error


@pytest.fixture
def site_packages(tmp_path: Path) -> Path:
    """The package as a wheel installs it: data inside, no checkout around it."""
    package = tmp_path / "site" / "conformance"
    shutil.copytree(ROOT / "conformance", package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "matrix", package / "data" / "matrix")
    family = package / "data" / "cases" / "fam"
    family.mkdir(parents=True)
    (family / "topic.py").write_text(GOOD)
    return package.parent


@pytest.mark.long
def test_installed_package_refuses_to_write_its_own_goldens(
    site_packages: Path, tmp_path: Path
) -> None:
    """Goldens in the user's folder are still written."""
    home = tmp_path / "home"
    (home / "mine").mkdir(parents=True)
    (home / "mine" / "own.py").write_text(f"{HEAD}\n\n\n@probe()\ndef own(env):\n    return 1\n")

    def run(*arguments: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "conformance", *arguments],
            cwd=home,
            env={**os.environ, "PYTHONPATH": str(site_packages)},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    assert run("run", "--cell", "0.6.2")[0] == 0
    code, output = run("accept")
    assert code == 2
    assert "goldens of an installed package cannot be changed; accept in a checkout, or" in output
    assert run("run", "mine", "--cell", "0.6.2")[0] == 1
    assert run("accept")[0] == 0
    assert (home / "golden").exists() or list(home.glob("mine/golden/own/*/spans.toml"))


@pytest.mark.long
def test_accept_migrate_converts_goldens_of_an_older_format(
    new_project: MakeProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until they are converted their cases are tainted; afterwards they match."""
    project = new_project({TOPIC: case("raise TypeError('bad shape')", name="bad")})
    content = "normaliser: 3\noutcome: raised\nstage: execute\ntype: TypeError\n\nbad shape\n"
    name = f"error-{hashlib.sha256(content.encode()).hexdigest()[:32]}.txt"
    project.write(
        {
            f"cases/fam/golden/topic/{name}": content,
            "cases/fam/golden/topic/bad.toml": (
                f'format = 1\ncase = "fam/bad"\n\n[cpu.error]\n"0.6.2" = "{name}"\n'
            ),
        }
    )
    ending = project.run("run")
    assert ending.code == 1
    assert "golden is tainted: convert it with conformance accept --migrate" in ending.out
    ending = project.run("accept")
    assert ending.code == 2
    assert "goldens of an older format; convert them first" in ending.error
    ending = project.run("accept", "--migrate", "--cell", "0.6.2")
    assert "--migrate is about goldens on disk" in ending.error
    monkeypatch.setenv("CI", "true")
    assert project.run("accept", "--migrate").code == 2
    monkeypatch.delenv("CI")
    assert project.run("accept", "--migrate", "--dry-run").out == "1 to convert\n"
    assert project.run("accept", "--migrate").out == "1 converted, 2 files removed\n"
    code, records = project.results()
    assert (code, records["bad"].verdict) == (0, "match")
    assert project.run("accept", "--migrate").out == "0 converted, 0 files removed\n"
