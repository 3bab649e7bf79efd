"""The folder of a site: whole, and without pages of an older one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.app.report import MANIFEST, write_site
from conformance.errors import InfrastructureError
from tests.holders import another_writer

if TYPE_CHECKING:
    from pathlib import Path


def test_what_a_later_site_does_not_have_is_removed(tmp_path: Path) -> None:
    """A case that is gone; what somebody else put there stays."""
    write_site([("index.html", b"1"), ("cases/f/a.html", b"a")], tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    write_site([("index.html", b"2"), ("cases/f/b.html", b"b")], tmp_path)
    left = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()}
    assert left == {"index.html", "cases/f/b.html", "notes.txt", MANIFEST}
    assert (tmp_path / "index.html").read_bytes() == b"2"


@pytest.mark.parametrize("listed", ["../outside.txt", "/etc/hosts", "\xff"])
def test_a_list_of_files_is_not_believed(tmp_path: Path, listed: str) -> None:
    """Whatever it names, nothing outside of the folder is touched."""
    outside = tmp_path / "outside.txt"
    outside.write_text("mine")
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / MANIFEST).write_bytes(f"{listed}\n".encode("latin-1"))
    write_site([("index.html", b"1")], folder)
    assert outside.read_text() == "mine"
    assert (folder / "index.html").exists()


def test_a_disk_that_refuses_is_told(tmp_path: Path) -> None:
    """In one sentence, with the file."""
    (tmp_path / "site").write_text("a file")
    with pytest.raises(InfrastructureError, match="cannot be written"):
        write_site([("index.html", b"1")], tmp_path / "site")


def test_two_sites_are_not_written_into_one_folder_at_once(tmp_path: Path) -> None:
    """Each would remove pages of the other; the second waits."""
    with another_writer(tmp_path) as released:
        write_site([("index.html", b"1")], tmp_path)
        assert released.is_set()
