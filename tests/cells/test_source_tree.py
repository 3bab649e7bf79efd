"""Sources of a package at a commit, as folders for PYTHONPATH."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from conformance.cells import source_tree
from conformance.cells.repository import open_repository
from conformance.cells.source_tree import find_source_package, provide_sources
from conformance.errors import UsageError
from tests.repositories import MadeRepository, make_repository

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.cells.repository import Repository
    from conformance.cells.source_tree import SourcePackage


@pytest.fixture
def made(tmp_path: Path) -> MadeRepository:
    """Return a repository of a package with two modules."""
    repository = make_repository(tmp_path / "upstream")
    repository.commit("one", {"my_lib/__init__.py": "x = 1\n", "my_lib/same.py": "y = 1\n"})
    return repository


def provide(made: MadeRepository, commit: str, tmp_path: Path, version: str = "1.0+x") -> Path:
    """Return the folder with the sources of a commit."""
    repository, package = find(made, commit, tmp_path)
    return provide_sources(repository, commit, package, version, tmp_path / "cache")


def find(
    made: MadeRepository, commit: str, tmp_path: Path, installed: Path | None = None
) -> tuple[Repository, SourcePackage]:
    """Return the repository, and its package."""
    repository = open_repository(str(made.folder), tmp_path)
    return repository, find_source_package(repository, commit, "my-lib", installed)


def import_x(folder: Path) -> str:
    """Return `x` and the version of the package, as a new Python process sees them."""
    program = "import my_lib, importlib.metadata as m; print(my_lib.x, m.version('my-lib'))"
    return run_python(folder, program)


def run_python(folder: Path, program: str) -> str:
    """Return the output of a program that finds packages in a folder."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": ""}
    command = [sys.executable, "-c", program]
    return subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True
    ).stdout.strip()


def test_process_imports_the_commit_under_its_version(made: MadeRepository, tmp_path: Path) -> None:
    """Whatever else is installed."""
    first = made.git("rev-parse", "HEAD")
    second = made.commit("two", {"my_lib/__init__.py": "x = 2\n"})
    assert import_x(provide(made, first, tmp_path)) == "1 1.0+x"
    assert import_x(provide(made, second, tmp_path, "1.0+y")) == "2 1.0+y"


def test_trees_share_equal_files_and_their_bytecode(made: MadeRepository, tmp_path: Path) -> None:
    """A change of one file costs one file."""
    first = provide(made, made.git("rev-parse", "HEAD"), tmp_path)
    run_python(first, "import my_lib.same")
    second = provide(made, made.commit("two", {"my_lib/__init__.py": "x = 2\n"}), tmp_path)
    assert (first / "my_lib" / "same.py").samefile(second / "my_lib" / "same.py")
    names = {file.name.partition(".")[0] for file in (second / "my_lib/__pycache__").iterdir()}
    assert names == {"same"}
    assert import_x(first).startswith("1")


def test_version_file_of_jax_needs_no_git(tmp_path: Path) -> None:
    """Its build replaces the same line; the file of another tree stays as it is."""
    made = make_repository(tmp_path / "upstream")
    text = '_version = "1.2"\n_release_version: str | None = None\n'
    made.commit("one", {"jax/__init__.py": "", "jax/version.py": text})
    repository = open_repository(str(made.folder), tmp_path)
    package = find_source_package(repository, "main", "jax", None)
    commit = made.git("rev-parse", "main")
    trees = [
        provide_sources(repository, commit, package, version, tmp_path / "cache")
        for version in ("1.2.dev1", "1.3.dev1")
    ]
    assert [(tree / "jax/version.py").read_text() for tree in trees] == [
        f'_version = "1.2"\n_release_version = {version!r}\n'
        for version in ("1.2.dev1", "1.3.dev1")
    ]


def test_package_may_be_below_src(tmp_path: Path) -> None:
    """The layout that many libraries have."""
    made = make_repository(tmp_path / "upstream")
    commit = made.commit("one", {"src/my_lib/__init__.py": "x = 5\n", "src/other/a.py": ""})
    folder = provide(made, commit, tmp_path)
    assert import_x(folder) == "5 1.0+x"
    assert not (folder / "other").exists()


def install(folder: Path, files: dict[str, str]) -> Path:
    """Return a folder of packages in which files of the package are installed."""
    record = "".join(f"{name},sha256=x,1\n" for name in files)
    for name, text in {**files, "my_lib-1.0.dist-info/RECORD": record}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_generated_file_comes_from_the_installed_package(
    made: MadeRepository, tmp_path: Path
) -> None:
    """A build writes it, so no commit has it; a file that a commit removed stays removed."""
    installed = install(
        tmp_path / "site", {"my_lib/__init__.py": "", "my_lib/_version.py": "v = 1\n",
                            "my_lib/same.py": ""},
    )  # fmt: skip
    first = made.git("rev-parse", "HEAD")
    repository, package = find(made, first, tmp_path, installed)
    (made.folder / "my_lib" / "same.py").unlink()
    without = made.commit("remove a module")
    folder = provide_sources(repository, without, package, "1", tmp_path / "cache")
    assert (folder / "my_lib" / "_version.py").read_text() == "v = 1\n"
    assert not (folder / "my_lib" / "same.py").exists()


def test_compiled_package_is_refused(made: MadeRepository, tmp_path: Path) -> None:
    """Its commits would have to be built."""
    installed = install(tmp_path / "site", {"my_lib/__init__.py": "", "my_lib/fast.so": ""})
    with pytest.raises(UsageError, match=r"my-lib: has compiled modules \(my_lib/fast\.so\)"):
        find(made, "main", tmp_path, installed)


def test_repository_of_another_package_is_refused(made: MadeRepository, tmp_path: Path) -> None:
    """The message names the folders that were expected."""
    repository = open_repository(str(made.folder), tmp_path)
    with pytest.raises(UsageError, match=r"has no other/ or src/other/ at main"):
        find_source_package(repository, "main", "other", None)


def test_killed_export_is_made_again(made: MadeRepository, tmp_path: Path) -> None:
    """A tree without its mark is incomplete."""
    commit = made.git("rev-parse", "HEAD")
    folder = provide(made, commit, tmp_path)
    (folder / source_tree.DONE).unlink()
    (folder / "my_lib" / "same.py").unlink()
    assert provide(made, commit, tmp_path) == folder
    assert (folder / "my_lib" / "same.py").exists()


def test_old_trees_are_removed(
    made: MadeRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those unused for longest, and none that a search may still use."""
    monkeypatch.setattr(source_tree, "MOST", 1)
    commits = [made.commit(f"c{n}", {"my_lib/n.py": f"n = {n}\n"}) for n in range(4)]
    trees = [provide(made, commit, tmp_path) for commit in commits[:3]]
    for age, tree in zip((9000, 8000, 10), trees, strict=True):
        then = tree.stat().st_mtime - age
        os.utime(tree, (then, then))
    provide(made, commits[3], tmp_path)
    assert [tree.exists() for tree in trees] == [False, False, True]
