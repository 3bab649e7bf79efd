"""A scan with the command that shows which hits are reached, in real environments."""

from __future__ import annotations

import shlex
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pluggy
import pytest

from conformance.app.scan.changes import scan
from conformance.report.scan.text import make_scan_json, render_scan
from conformance.scan.hits import HitKind
from tests.workbench import planned_cell, python_of

if TYPE_CHECKING:
    from conformance.scan.result import ScanResult

OLD, LATER, NEW = "0.5.3", "0.11.0", "0.12.0.1"
"""Releases whose cells have Python 3.11, 3.12 and 3.12."""
PACKAGES = (
    "pytest",
    "_pytest",
    "pluggy",
    "iniconfig",
    "packaging",
    "pygments",
    "xdist",
    "execnet",
    "py.py",
)
"""Pure Python, so that any cell can import them."""

STEPS = """\
import jax
from jax.scipy.stats import poisson
from jax.experimental.shard_alike import (
    shard_alike,
)


def used(x):
    return poisson.pmf(3, 2, loc=x)


def unused(x):
    return poisson.pmf(3, 2, loc=x)


halve = lambda x: poisson.pmf(3, 2, loc=x)
"""
"""`poisson.pmf` with `loc` changes in 0.12.0, where `shard_alike` is gone."""
TEST = """\
from jax.scipy.stats import poisson
from train.steps import used


def test_used():
    assert poisson.pmf(3, 2, loc=used(0.0)) >= 0
"""
TOOL = """\
from jax.scipy.stats import poisson


def tool(x):
    return poisson.pmf(3, 2, loc=x)


def unused(x):
    return poisson.pmf(3, 2, loc=x)
"""


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with a test, and an installed library."""
    packages = tmp_path / "env" / "site-packages"
    files = {
        tmp_path / "train" / "__init__.py": "",
        tmp_path / "train" / "steps.py": STEPS,
        tmp_path / "tests" / "test_steps.py": TEST,
        packages / "tool.py": TOOL,
        packages / "tool_kit-1.2.dist-info" / "METADATA": "Name: tool-kit\nVersion: 1.2\n",
        packages / "tool_kit-1.2.dist-info" / "RECORD": "tool.py,,\n",
    }
    for file, text in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    installed = Path(pluggy.__file__).parents[1]
    for name in PACKAGES:
        (packages / name).symlink_to(installed / name)
    for name in ("pytest", "pytest_xdist"):
        metadata = f"{name}-{version(name)}.dist-info"
        (packages / metadata).symlink_to(installed / metadata)
    monkeypatch.setenv("PYTHONPATH", str(packages))
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_python(release: str, *arguments: str) -> str:
    """Return a command line that runs the interpreter of a release."""
    return shlex.join([str(python_of(planned_cell(release))), *arguments])


def places(result: ScanResult) -> dict[tuple[str, int], bool | None]:
    """Return whether each place of a hit is reached."""
    return {(one.file.name, one.line): one.reached for one in result.hits}


@pytest.mark.long(keep=1)
@pytest.mark.cell("3.11", "3.12")
@pytest.mark.parametrize("release", [OLD, LATER])
def test_hits_are_ranked_by_what_a_test_reaches(code: Path, release: str) -> None:
    """In the code base, whichever Python the release has; pytest rewrites the assertion."""
    command = run_python(release, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "tests")
    result = scan([code / "train", code / "tests"], release, NEW, command=command)
    assert result.run is not None
    assert (result.run.ended, result.run.code.releases) == ("", {release})
    assert places(result) == {
        ("steps.py", 4): True,
        ("steps.py", 9): True,
        ("steps.py", 13): False,
        ("steps.py", 16): False,
        ("test_steps.py", 6): True,
    }
    lines = [*render_scan(result)]
    reached, unreached = (lines.index(f"# {one}reached by `{command}`") for one in ("", "not "))
    assert (
        reached
        < lines.index(f"    {code}/train/steps.py:9, {code}/tests/test_steps.py:6")
        < unreached
    )
    assert lines[-2].startswith("ran in ")
    assert f"1 process with jax {release}; reached " in lines[-2]


@pytest.mark.long
@pytest.mark.cell("3.11", "3.12")
@pytest.mark.parametrize("release", [OLD, LATER])
def test_every_process_of_a_command_counts(code: Path, release: str) -> None:
    """Each worker of pytest-xdist imports jax for itself."""
    more = "def test_again():\n    from train.steps import halve\n    halve(1)\n"
    (code / "tests" / "test_again.py").write_text(more)
    options = ("-n", "2", "--dist", "each", "-p", "xdist", "-p", "no:cacheprovider")
    command = run_python(release, "-m", "pytest", "-q", *options, "tests")
    result = scan([code / "train"], release, NEW, command=command)
    assert result.run is not None
    assert result.run.ended == ""
    assert (result.run.code.processes, result.run.code.losses) == (2, set())
    assert places(result)["steps.py", 16] is True


@pytest.mark.long
@pytest.mark.cell
def test_hits_through_libraries_are_apart(code: Path) -> None:
    """Only those that are reached, with the distribution; other files of the user have none."""
    (code / "main.py").write_text("import tool\ntool.tool(1.0)\nfrom train.steps import used\n")
    (code / "other.py").write_text("import jax\njax.tree_map(abs, 1)\nimport main\n")
    result = scan([code / "train"], OLD, NEW, command=run_python(OLD, "other.py"))
    assert {
        (one.library, one.file.name, one.line, one.hit.kind) for one in result.library_hits
    } == {
        ("tool-kit 1.2", "tool.py", 5, HitKind.BEHAVIOUR),
        ("", "other.py", 2, HitKind.REMOVED),
    }
    text = "\n".join(render_scan(result))
    assert "# reached through tool-kit 1.2: 1 hit\n" in text
    assert "# reached through other files: 1 hit\n" in text
    rows = make_scan_json(result)["library_hits"]
    assert {(row["library"], row["name"]) for row in rows} >= {
        ("tool-kit 1.2", "jax.scipy.stats.poisson.pmf")
    }


@pytest.mark.long
@pytest.mark.cell
def test_an_installed_copy_is_the_code_base(code: Path) -> None:
    """Its lines are those of the source, which does not run itself."""
    installed = code / "env" / "site-packages" / "train"
    (code / "train").rename(installed)
    (code / "src" / "train").mkdir(parents=True)
    for file in installed.iterdir():
        (code / "src" / "train" / file.name).write_bytes(file.read_bytes())
    command = run_python(OLD, "-c", "from train.steps import used; used(1.0)")
    result = scan([code / "src"], OLD, NEW, command=command)
    assert places(result) == {
        ("steps.py", 4): True, ("steps.py", 9): True, ("steps.py", 13): False,
        ("steps.py", 16): False,
    }  # fmt: skip
    assert result.library_hits == []


DYNAMIC = """\
import jax
name = "shard" + "_alike"
module = getattr(__import__("jax.experimental.shard_alike").experimental, name)
getattr(module, name)(1.0, 2.0)
jax.config.update("jax_enable_x64", True)
jax.vmap(lambda x: jax.numpy.sum(x, axis=0))(jax.numpy.ones((2, 3)))
"""


@pytest.mark.cell("3.12")
def test_what_the_source_does_not_show_is_reached(
    code: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that is computed, an option in the environment, and what jax does."""
    monkeypatch.setenv("JAX_REFS_TO_PINS", "1")
    (code / "script.py").write_text(DYNAMIC)
    result = scan([code / "script.py"], LATER, NEW, command=run_python(LATER, "script.py"))
    assert result.run is not None
    assert result.run.ended == ""
    assert places(result) == {("script.py", 4): True}
    assert [one.text for one in result.run.elsewhere] == ["the option `jax_refs_to_pins` is gone"]
    assert "# reached, but not from a line of code" in [*render_scan(result)]
    run: dict[str, Any] = make_scan_json(result)["run"]
    assert (run["transforms"], run["exit"], run["losses"]) == (["jax.vmap"], 0, [])
    assert {"reduce_sum", "broadcast_in_dim"} <= {*run["primitives"]}
    assert [option["line"] for option in run["options"]] == [5]
    calls = {use["name"]: use for use in run["names"]}
    assert (calls["jax.numpy.sum"]["positions"], calls["jax.numpy.sum"]["keywords"]) == (
        1,
        ["axis"],
    )
    assert calls["jax.experimental.shard_alike.shard_alike"]["keywords"] is None


@pytest.mark.long
@pytest.mark.cell
def test_a_command_that_fails_has_reached_something(code: Path) -> None:
    """The hits that it reached before are ranked, also if it took too long."""
    source = "from train.steps import used\nused(1.0)\n"
    (code / "fails.py").write_text(f"{source}raise SystemExit('no data')\n")
    (code / "hangs.py").write_text(f"{source}__import__('time').sleep(600)\n")
    for name, timeout, ended in (
        ("fails.py", None, "ended with exit status 1: no data"),
        ("hangs.py", 20.0, "took more than 20 s and was ended"),
    ):
        command = run_python(OLD, name)
        result = scan([code / "train"], OLD, NEW, command=command, timeout=timeout)
        assert places(result)["steps.py", 9] is True
        assert f"`{command}` {ended}" in [*render_scan(result)]


@pytest.mark.long(keep=2)
@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("missing-command --flag", "ended with exit status 127: "),
        ("exit 4", "ended with exit status 4: no output"),
        ("echo '== 1 failed in 2 s =='; exit 1", "ended with exit status 1: 1 failed in 2 s"),
        ("kill -9 $$", "was ended by signal 9"),
        ("true", "succeeded"),
    ],
)
def test_a_command_without_jax_ranks_nothing(code: Path, command: str, words: str) -> None:
    """The hits are shown as without it, and one line says why."""
    result = scan([code / "train"], OLD, NEW, command=command)
    assert {*places(result).values()} == {None}
    lines = [*render_scan(result)]
    (line,) = (line for line in lines if f"`{command}` {words}" in line)
    assert line.endswith("; it imported no jax, so no hit is ranked")
    assert not any(line.startswith("# ") for line in lines)
