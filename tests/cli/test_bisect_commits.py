"""`conformance bisect --commits` in repositories made from two releases of jax."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.projects import HEAD
from tests.repositories import (
    MadeRepository,
    copy_sources,
    find_installed,
    make_repository,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.projects import Project

ENDS = ("0.6.1", "0.6.2")
SCRIPT = """\
import jax
assert not hasattr(jax, "marked")
"""
CASE = f"""\
{HEAD}


@program(devices=1)
def marked(env):
    import jax
    scale = getattr(jax, "marked", 1)
    return Program(lambda x: x * scale, args=(np.float32([1, 2]),), reference=lambda x: x)
"""
pytestmark = [pytest.mark.project({"cases/marks/marked.py": CASE}), pytest.mark.cell]


@pytest.fixture(scope="module")
def jax(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MadeRepository]:
    """Return a history from jax 0.6.1 to 0.6.2, with commits between them.

    The newer release has a mark that its wheel lacks, so the searches below start from revisions.
    """
    made = make_repository(tmp_path_factory.mktemp("repositories") / "jax")
    older, newer = map(find_installed, ENDS)
    copy_sources(older, made.folder / "jax")
    made.commit("release 0.6.1", tag="jax-v0.6.1")
    made.commit("notes", {"README": "a file that no process imports\n"})
    made.commit("a comment", {"jax/_src/comment.py": "# a comment\n"})
    init = made.folder / "jax" / "__init__.py"
    text = init.read_text()
    made.commit("broken", {"jax/__init__.py": f"{text}\nraise ImportError('broken')\n"}, tag="cut")
    made.commit("mark\n\nFixes #42", {"jax/__init__.py": f"{text}\nmarked = 2\n"}, tag="mark")
    made.commit("another comment", {"jax/_src/comment.py": "# another\n"}, tag="last")
    copy_sources(newer, made.folder / "jax", jaxlib=ENDS[0])
    made.commit("release 0.6.2", tag="jax-v0.6.2")
    yield made
    shutil.rmtree(made.folder)


def bisect(project: Project, jax: MadeRepository, target: str, *options: str) -> dict[str, object]:
    """Run a search among the commits of the repository, and return its answer."""
    ending = project.run(
        "bisect", target, "--commits", "--jax-repo", str(jax.folder), "--json", "-", *options
    )
    assert ending.code in {0, 1}, ending.err
    answer: dict[str, object] = ending.json
    return answer


def find_hash(jax: MadeRepository, revision: str) -> str:
    """Return the hash of a revision."""
    return jax.git("rev-parse", f"{revision}^{{commit}}")


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("target", ["report.py", "marks/marked"])
def test_commit_is_found_in_a_script_and_in_a_case(
    project: Project, jax: MadeRepository, target: str
) -> None:
    """Among revisions; the commit before it cannot be imported, so either may be the culprit."""
    project.write({"report.py": SCRIPT})
    ends = ("--good", find_hash(jax, "jax-v0.6.1"), "--bad", find_hash(jax, "last"))
    answer = bisect(project, jax, target, *ends, "--jax", "0.6.1")
    found = answer["commit"]
    assert isinstance(found, dict)
    assert [commit["title"] for commit in found["commits"]] == ["broken", "mark"]
    assert found["commits"][1]["references"] == ["#42"]
    assert not found["confirmed"]


@pytest.mark.long
def test_releases_that_differ_are_searched_between(project: Project, jax: MadeRepository) -> None:
    """First the releases, then the commits: here the one that brings the newer release."""
    removed = find_removed_or_added(jax)
    project.write({"report.py": f"import importlib\nimportlib.import_module({removed!r})\n"})
    answer = bisect(project, jax, "report.py", "--good", ENDS[0], "--bad", ENDS[1])
    found = answer["commit"]
    assert isinstance(found, dict)
    assert [commit["title"] for commit in found["commits"]] == ["release 0.6.2"]
    assert found["verdict"] == "commit"
    assert found["confirmed"]
    assert {step["packages_of"] for step in found["steps"]} <= set(ENDS)


@pytest.mark.long
def test_upgrade_of_a_suite_names_layer_and_commit(project: Project, jax: MadeRepository) -> None:
    """As that of a case does; the test is recorded as a program."""
    module = find_removed_or_added(jax)
    text = f"import importlib\n\n\ndef test_module():\n    importlib.import_module({module!r})\n"
    project.write({"test_own.py": text})
    ending = project.run(
        "upgrade", *ENDS, "--suite", "test_own.py", "--blame-all", "--layers", "--commits",
        "--jax-repo", str(jax.folder),
    )  # fmt: skip
    assert ending.code == 0, ending.err
    (commit,) = find_lines(ending.out, "commit: jax ")
    assert "release 0.6.2" in commit
    assert find_lines(ending.out, "layer: ") == [
        "layer: front end: tracing (ModuleNotFoundError before or outside of any computation)"
    ]


def find_lines(text: str, head: str) -> list[str]:
    """Return the lines that begin with a word, without spaces around them."""
    return [line for line in map(str.strip, text.splitlines()) if line.startswith(head)]


def find_removed_or_added(jax: MadeRepository) -> str:
    """Return a module of jax that one of the releases lacks."""
    lines = jax.git("diff", "--name-status", "jax-v0.6.1", "jax-v0.6.2", "--", "jax/_src")
    for line in lines.splitlines():
        status, _, path = line.partition("\t")
        if status in {"A", "D"} and path.endswith(".py") and path.count("/") == 2:
            return path.removesuffix(".py").replace("/", ".")
    raise AssertionError(lines)


@pytest.mark.long
def test_repository_without_the_release_is_an_error_of_usage(
    project: Project, tmp_path: Path
) -> None:
    """It names the tags that were expected, after the releases have been searched."""
    empty = make_repository(tmp_path / "empty")
    empty.commit("one", {"jax/__init__.py": ""})
    project.write({"report.py": "import jax\nassert jax.__version__ < '0.6.2'\n"})
    ending = project.run(
        "bisect", "report.py", "--good", ENDS[0], "--bad", ENDS[1], "--commits",
        "--jax-repo", str(empty.folder),
    )  # fmt: skip
    assert ending.code == 2
    assert "has no tag of 0.6.1, expected one of refs/tags/jax-v0.6.1" in ending.err


def test_axis_without_commits_is_an_error_of_usage(project: Project) -> None:
    """Before anything runs."""
    project.write({"report.py": SCRIPT})
    option = ("--axis", "config:jax_enable_x64", "--good", "false", "--bad", "true")
    ending = project.run("bisect", "report.py", *option, "--commits")
    assert (ending.code, ending.out) == (2, "")
    assert "the axis config:jax_enable_x64 has no commits, expected a package" in ending.err
    ending = project.run(
        "bisect", "report.py", "--axis", "flax", "--good", "0.10.0", "--bad", "0.10.4", "--commits"
    )
    assert "the repository of flax is unknown; add --repo PATH or URL" in ending.err


def test_own_package_is_searched_in_its_repository(project: Project, tmp_path: Path) -> None:
    """`--axis mylib --commits --repo` needs no index."""
    made = make_repository(tmp_path / "mylib")
    first = made.commit("one", {"src/mylib/__init__.py": "def f(): return 1\n"}, tag="v1.0")
    made.commit("two", {"src/mylib/other.py": ""})
    made.commit("three", {"src/mylib/__init__.py": "def f(): return 2\n"})
    made.commit("four", {"src/mylib/other.py": "x = 1\n"})
    project.write({"report.py": "import mylib\nassert mylib.f() == 1\n"})
    ending = project.run(
        "bisect", "report.py", "--axis", "mylib", "--good", first, "--bad", "main", "--jax",
        "0.6.2", "--commits", "--repo", str(made.folder), "--json", "-",
    )  # fmt: skip
    assert ending.code == 0, ending.err
    assert [commit["title"] for commit in ending.json["commit"]["commits"]] == ["three"]
