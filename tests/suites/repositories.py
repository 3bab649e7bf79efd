"""Git repositories for tests: a suite, with another repository as its submodule."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.suites.catalogue.definition import Definition, NamedSuite
from tests.suites.trials import write

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

NAME = "mini"
TESTS = {
    "pytest.ini": "[pytest]\n",
    "conftest.py": """\
def pytest_addoption(parser):
    parser.addoption("--max-examples", type=int, default=100)
""",
    "mini_tests/__init__.py": """\
import os

version = os.environ["MINI_VERSION"]
""",
    "mini_tests/test_sums.py": """\
import json
import os
from pathlib import Path

import mini_tests

DATA = json.loads((Path(__file__).parents[1] / "spec" / "data.json").read_text())


def test_sum():
    assert sum(DATA) == 6


def test_examples(request):
    assert request.config.getoption("--max-examples") == 5


def test_version():
    assert mini_tests.version == os.environ["MINI_VERSION"]
""",
}
"""A suite that reads a file of its submodule, and has settings of all kinds."""
DEFINITION = """\
title = "Mini"
url = "{url}"
revision = "{revision}"
licence = "MIT"
paths = ["mini_tests"]
requires = []
max_examples = "--max-examples"
examples = 5
timeout = 30
standards = ["1", "2", "3"]
standard = "MINI_VERSION"
claim = "jax:__version__"

[environment]
MINI = "yes"

[facts]
standard = "mini_tests:version"
"""


def git(folder: Path, *arguments: str) -> str:
    """Run git as somebody, and return what it says."""
    who = {f"GIT_{role}_{what}": "a@b.c" for role in ("AUTHOR", "COMMITTER")
           for what in ("NAME", "EMAIL")}  # fmt: skip
    done = subprocess.run(
        ["git", *arguments], cwd=folder, check=True, capture_output=True, text=True,
        env={**os.environ, **who},
    )  # fmt: skip
    return done.stdout.strip()


def committed(folder: Path, files: Mapping[str, str]) -> str:
    """Write files into a repository, made if need be, and return the commit of them."""
    if not (folder / ".git").exists():
        folder.mkdir(parents=True, exist_ok=True)
        git(folder, "init", "--quiet", "--initial-branch=main")
    write(folder, files)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=more")
    return git(folder, "rev-parse", "HEAD")


@dataclass(frozen=True)
class Repositories:
    """A repository of a suite, one below it, and the commit of it all.

    Attributes:
        folder: Where both lie, `suite` and `spec`.
        revision: Commit of the suite.
    """

    folder: Path
    revision: str

    @property
    def url(self) -> str:
        """Where the suite comes from."""
        return (self.folder / "suite").as_uri()

    @property
    def toml(self) -> str:
        """The definition of the suite."""
        return DEFINITION.format(url=self.url, revision=self.revision)

    def named(self) -> NamedSuite:
        """Return the suite."""
        given = Definition(
            title="Mini", url=self.url, revision=self.revision, licence="MIT",
            paths=("mini_tests",),
        )  # fmt: skip
        return NamedSuite(name=NAME, folder=self.folder, definition=given)


def repositories(
    folder: Path, link: str = "../spec", files: Mapping[str, str] = TESTS
) -> Repositories:
    """Make the repositories; the suite's `.gitmodules` tells of the other as `link`."""
    spec = committed(folder / "spec", {"data.json": "[1, 2, 3]\n"})
    told = f'[submodule "spec"]\n\tpath = spec\n\turl = {link}\n'
    committed(folder / "suite", {**files, ".gitmodules": told})
    (folder / "suite" / "spec").mkdir()  # as of a clone whose submodules are not fetched
    git(folder / "suite", "update-index", "--add", "--cacheinfo", f"160000,{spec},spec")
    git(folder / "suite", "commit", "--quiet", "--message=spec")
    return Repositories(folder, git(folder / "suite", "rev-parse", "HEAD"))
