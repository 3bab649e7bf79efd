"""Compiled modules are lent where the source is the same file, and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.triage.blame.bytecode import lend_bytecode

if TYPE_CHECKING:
    from pathlib import Path


def test_what_is_lent(tmp_path: Path) -> None:
    """What has another source, or is not there, is compiled when it is imported."""
    one, other = (tmp_path / n / "lib" / "python3.11" / "site-packages" for n in "ab")
    for site in (one, other):
        (site / "pkg").mkdir(parents=True)
    cache = one / "pkg" / "__pycache__"
    cache.mkdir()
    for name in ("same", "changed", "gone"):
        (one / "pkg" / f"{name}.py").write_text("x = 1")
        (cache / f"{name}.cpython-311.pyc").write_text(name)
    (other / "pkg" / "same.py").hardlink_to(one / "pkg" / "same.py")
    (other / "pkg" / "changed.py").write_text("x = 1")
    lend_bytecode(tmp_path / "a", tmp_path / "b")
    lend_bytecode(tmp_path / "a", tmp_path / "b")
    lent = other / "pkg" / "__pycache__"
    assert [file.name for file in lent.iterdir()] == ["same.cpython-311.pyc"]
