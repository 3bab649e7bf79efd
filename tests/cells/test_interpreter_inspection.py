"""Inspection of interpreters: edited files of an environment, and unusable interpreters."""

from __future__ import annotations

import base64
import hashlib
import sys
from pathlib import Path

import pytest

from conformance.cells.interpreter_inspection import describe_edits, find_edited_files
from conformance.errors import InfrastructureError


def environment(folder: Path, package: str = "thing") -> tuple[Path, Path]:
    """Return the interpreter of a new environment, and its folder of packages, with one in it."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = folder / "lib" / version / "site-packages"
    info = packages / f"{package}-1.0.dist-info"
    info.mkdir(parents=True)
    base = Path(sys.executable).resolve()
    (folder / "pyvenv.cfg").write_text(
        f"home = {base.parent}\ninclude-system-site-packages = false\n"
    )
    (folder / "bin").mkdir()
    (folder / "bin" / "python").symlink_to(base)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {package.title()}\nVersion: 1.0\n"
    )
    lines = []
    for name in (f"{package}/a.py", f"{package}/b.py"):
        file = packages / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"# {name}\n")
        digest = base64.urlsafe_b64encode(hashlib.sha256(file.read_bytes()).digest())
        size = file.stat().st_size
        lines.append(f"{name},sha256={digest.rstrip(b'=').decode()},{size}")
    (info / "RECORD").write_text("\n".join([*lines, f"{package}-1.0.dist-info/RECORD,,", ""]))
    return folder / "bin" / "python", packages


def test_edited_and_removed_files_are_found(tmp_path: Path) -> None:
    """By package; added files belong to no package."""
    python, packages = environment(tmp_path)
    assert find_edited_files(python) == {}
    (packages / "thing" / "new.py").write_text("")
    (packages / "thing" / "b.py").write_text("other")
    assert find_edited_files(python) == {"thing": ("thing/b.py",)}
    (packages / "thing" / "a.py").unlink()
    assert find_edited_files(python) == {"thing": ("thing/a.py", "thing/b.py")}


def test_large_file_is_compared_by_size(tmp_path: Path) -> None:
    """An edit of it that keeps the size is not noticed."""
    python, packages = environment(tmp_path)
    file = packages / "thing" / "b.py"
    text = file.read_text()
    file.write_text(text.swapcase())
    assert find_edited_files(python, largest=2) == {}
    file.write_text(text + "more")
    assert find_edited_files(python, largest=2) == {"thing": ("thing/b.py",)}
    assert find_edited_files(python, ("other",)) == {}


def test_edited_jax_is_described(tmp_path: Path) -> None:
    """Edits of other packages are not."""
    python, packages = environment(tmp_path / "one", "jax")
    assert describe_edits(python) == ""
    (packages / "jax" / "b.py").write_text("other")
    assert describe_edits(python) == (
        "1 file of jax not as installed (jax/b.py): the RECORD of the environment does not match"
    )
    other, packages = environment(tmp_path / "two")
    (packages / "thing" / "b.py").write_text("other")
    assert describe_edits(other) == ""


def test_unusable_interpreter_is_infra(tmp_path: Path) -> None:
    """A missing one, and one that prints something else."""
    with pytest.raises(InfrastructureError, match="does not run"):
        find_edited_files(tmp_path / "python")
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\necho hello\n")
    silent.chmod(0o755)
    with pytest.raises(InfrastructureError, match="not a Python interpreter"):
        find_edited_files(silent)
