"""Writing a site into a folder, and removing the pages of an older one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.app.report import MANIFEST, write_site
from conformance.errors import InfrastructureError
from tests.holders import another_writer

if TYPE_CHECKING:
    from pathlib import Path


def test_write_site_removes_pages_of_the_previous_site(tmp_path: Path) -> None:
    """Files that somebody else put into the folder remain."""
    write_site([("index.html", b"1"), ("cases/f/a.html", b"a")], tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    write_site([("index.html", b"2"), ("cases/f/b.html", b"b")], tmp_path)
    left = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()}
    assert left == {"index.html", "cases/f/b.html", "notes.txt", MANIFEST}
    assert (tmp_path / "index.html").read_bytes() == b"2"


@pytest.mark.parametrize("listed", ["../outside.txt", "/etc/hosts", "\xff"])
def test_write_site_deletes_nothing_outside_its_folder(tmp_path: Path, listed: str) -> None:
    """Neither relative nor absolute paths in the manifest are followed."""
    outside = tmp_path / "outside.txt"
    outside.write_text("mine")
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / MANIFEST).write_bytes(f"{listed}\n".encode("latin-1"))
    write_site([("index.html", b"1")], folder)
    assert outside.read_text() == "mine"
    assert (folder / "index.html").exists()


def test_unwritable_site_folder_is_an_infrastructure_error(tmp_path: Path) -> None:
    """One sentence with the file."""
    (tmp_path / "site").write_text("a file")
    with pytest.raises(InfrastructureError, match="cannot be written"):
        write_site([("index.html", b"1")], tmp_path / "site")


def test_write_site_waits_for_another_writer(tmp_path: Path) -> None:
    """Two writers would remove each other's pages."""
    with another_writer(tmp_path) as released:
        write_site([("index.html", b"1")], tmp_path)
        assert released.is_set()
