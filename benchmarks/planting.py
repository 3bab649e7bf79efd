"""Small changes planted in a copy of the newest release, and the corpus run on it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import msgspec
from common import ROOT, prepared, setting

from conformance.cells.provision import provision

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

CELL = "latest@cpu8"
PACKAGES = "lib/python*/site-packages/jax"


class Plant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change of one file of jax.

    Attributes:
        told: What it is.
        file: The file.
        edits: What stands there once, and what is put in its place.
        families: Families that are to notice it.
        explained: Why no case can notice it, empty for one that is to be noticed.
    """

    told: str
    file: str
    edits: tuple[tuple[str, str], ...]
    families: tuple[str, ...] = ()
    explained: str = ""


def plants(file: Path) -> dict[str, Plant]:
    """Return the changes that a file describes, by name."""
    return msgspec.toml.decode(file.read_bytes(), type=dict[str, Plant])


def release_environment() -> Path:
    """Return the environment of the newest release, made if it is not there."""
    preparation = prepared(CELL)
    (planned,) = preparation.cells
    lock = preparation.locks[planned.cell.id]
    return provision(planned.cell, lock=lock, cache=setting().cache).python.parent.parent


def planted(release: Path, copy: Path, chosen: Iterable[Plant]) -> Path:
    """Return the interpreter of a copy of an environment with some changes in it."""
    shutil.copytree(release, copy, symlinks=True, copy_function=os.link)
    (jax,) = copy.glob(PACKAGES)
    for plant in chosen:
        file = jax / plant.file
        text = file.read_text()
        for before, after in plant.edits:
            assert text.count(before) == 1, f"{plant.file}: {before!r} is not there once"
            text = text.replace(before, after)
        file.unlink()  # the release has the same file
        file.write_text(text)
    return copy / "bin" / "python"


def conformance(*arguments: str) -> int:
    """Run a command of ours and return its status, which may be 1: that is what is to be seen."""
    command = [sys.executable, "-m", "conformance", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in {0, 1}, done.stderr
    return done.returncode
