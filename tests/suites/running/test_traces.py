"""What tests leave in their own folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.suites.catalogue.named import Checkout
from conformance.suites.running.traces import Traces, listing, traces
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


def test_what_is_left(tmp_path: Path) -> None:
    """Of a checkout in the cache everything counts, but what is git's."""
    write(tmp_path, {"tests/test_a.py": "", "tests/b.txt": "", "gone.txt": ""})
    one = suite(tmp_path, "tests", own=False)
    before = listing(one)
    assert not traces(before, listing(one))
    (tmp_path / "gone.txt").unlink()
    write(tmp_path, {"tests/b.txt": "more", ".hypothesis/x": "", ".git/index": "", "new.txt": ""})
    assert traces(before, listing(one)) == Traces(
        added=(f"{tmp_path}/.hypothesis/x", f"{tmp_path}/new.txt"),
        changed=(f"{tmp_path}/tests/b.txt",), removed=(f"{tmp_path}/gone.txt",),
    )  # fmt: skip


def test_what_is_left_in_a_users_own_folder(tmp_path: Path) -> None:
    """What tools keep beside is none of it, nor what lies elsewhere."""
    write(tmp_path, {"tests/test_a.py": "", "one/test_b.py": ""})
    own = suite(tmp_path, "tests", "one/test_b.py::test_x", own=True)
    before = listing(own)
    write(tmp_path, {
        "tests/.cache/x": "", "tests/__pycache__/x.pyc": "", "else.txt": "", "one/sub/x": "",
        "tests/sub/out.txt": "", "one/out.txt": "",
    })  # fmt: skip
    left = traces(before, listing(own))
    assert left == Traces(added=(f"{tmp_path}/one/out.txt", f"{tmp_path}/tests/sub/out.txt"))
