"""The hash of a suite: all files that its tests may read or import."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.suites.files import find_project, hash_inputs
from tests.suites.trials import write

if TYPE_CHECKING:
    from pathlib import Path

FILES = {
    "pyproject.toml": "",
    "src/mine/core.py": "one = 1\n",
    "src/mine/table.csv": "1,2\n",
    "tests/test_one.py": "def test_one(): pass\n",
    "tests/data.csv": "1,2\n",
}


@pytest.mark.parametrize(
    ("changed", "counts"),
    [
        ("tests/test_one.py", True),
        ("tests/data.csv", True),
        ("tests/conftest.py", True),
        ("tests/sub/test_two.py", True),
        ("src/mine/core.py", True),
        ("pyproject.toml", True),
        ("src/mine/table.csv", False),
        ("tests/__pycache__/test_one.pyc", False),
        (".venv/lib/other.py", False),
        ("env/pyvenv.cfg", False),
        ("tests/reports/runs/one/run.json", False),
    ],
)
def test_hash_covers_project_and_suite(tmp_path: Path, changed: str, counts: bool) -> None:
    """Code and configuration of the project, and every file of the suite."""
    folder = write(tmp_path, FILES) / "tests"
    before = hash_inputs([folder])
    assert hash_inputs([folder]) == before
    write(tmp_path, {changed: FILES.get(changed, "") + "\n# more\n"})
    assert (hash_inputs([folder]) != before) is counts


def test_hash_covers_arguments(tmp_path: Path) -> None:
    """They decide the results, too."""
    folder = write(tmp_path, FILES) / "tests"
    assert hash_inputs([folder], "-m", "slow") != hash_inputs([folder], "-m", "not slow")


def test_hash_of_a_file_without_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules next to it count; other folders do not."""
    monkeypatch.setattr("conformance.suites.files.PROJECT_FILES", ("no such mark",))
    write(tmp_path, {"test_one.py": "", "helper.py": "", "other/code.py": ""})
    own = [tmp_path / "test_one.py"]
    assert find_project(own) is None
    before = hash_inputs(own)
    write(tmp_path, {"other/code.py": "# more\n"})
    assert hash_inputs(own) == before
    write(tmp_path, {"helper.py": "# more\n"})
    assert hash_inputs(own) != before


def test_dangling_link_is_ignored(tmp_path: Path) -> None:
    """It is not an error."""
    folder = write(tmp_path, FILES) / "tests"
    (folder / "link.py").symlink_to(tmp_path / "nothing")
    assert hash_inputs([folder])
