"""Files that tests change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.suites.catalogue.checkouts import Checkout
from conformance.suites.files import FileChanges, compare_scans
from conformance.suites.suite import Suite
from tests.suites.trials import write

if TYPE_CHECKING:
    from pathlib import Path


def suite(folder: Path, *paths: str, own: bool) -> Suite:
    """Return a suite of a folder."""
    return Suite(
        paths=tuple(f"{folder}/{path}" for path in paths), arguments=(), timeout=1.0, hash="",
        folder=folder, checkout=Checkout(folder=folder, own=own, content=""),
    )  # fmt: skip


def test_changes_of_a_checkout_are_found(tmp_path: Path) -> None:
    """Every file counts, except those of git."""
    write(tmp_path, {"tests/test_a.py": "", "tests/b.txt": "", "gone.txt": ""})
    one = suite(tmp_path, "tests", own=False)
    before = one.scan_files()
    assert not compare_scans(before, one.scan_files())
    (tmp_path / "gone.txt").unlink()
    write(tmp_path, {"tests/b.txt": "more", ".hypothesis/x": "", ".git/index": "", "new.txt": ""})
    assert compare_scans(before, one.scan_files()) == FileChanges(
        added=(f"{tmp_path}/.hypothesis/x", f"{tmp_path}/new.txt"),
        changed=(f"{tmp_path}/tests/b.txt",), removed=(f"{tmp_path}/gone.txt",),
    )  # fmt: skip


def test_changes_of_an_own_folder_are_found(tmp_path: Path) -> None:
    """Hidden and generated files, and other folders, do not count."""
    write(tmp_path, {"tests/test_a.py": "", "one/test_b.py": ""})
    own = suite(tmp_path, "tests", "one/test_b.py::test_x", own=True)
    before = own.scan_files()
    write(tmp_path, {
        "tests/.cache/x": "", "tests/__pycache__/x.pyc": "", "else.txt": "", "one/sub/x": "",
        "tests/sub/out.txt": "", "one/out.txt": "",
    })  # fmt: skip
    left = compare_scans(before, own.scan_files())
    assert left == FileChanges(added=(f"{tmp_path}/one/out.txt", f"{tmp_path}/tests/sub/out.txt"))
