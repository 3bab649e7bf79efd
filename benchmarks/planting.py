"""Plants small changes in a copy of the newest release, for the corpus to notice."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import msgspec
from common import ROOT, checkout_context, prepare

from conformance.cells.provision import provision

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

CELL = "latest@cpu8"
PACKAGES = "lib/python*/site-packages/jax"


class Plant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change of one file of jax.

    Attributes:
        summary: Description of the change.
        file: Path of the file, relative to the package jax.
        edits: Texts that occur once in the file, each with its replacement.
        families: Families that should notice the change; they run first.
        survives_because: Reason why no case can notice the change, empty if a case should.
    """

    summary: str
    file: str
    edits: tuple[tuple[str, str], ...]
    families: tuple[str, ...] = ()
    survives_because: str = ""


def load_plants(file: Path) -> dict[str, Plant]:
    """Return the changes that a file describes, by name."""
    return msgspec.toml.decode(file.read_bytes(), type=dict[str, Plant])


def release_environment() -> Path:
    """Return the environment of the newest release, provisioned if it is missing."""
    preparation = prepare(CELL)
    (planned,) = preparation.cells
    lock = preparation.locks[planned.cell.id]
    return provision(planned.cell, lock=lock, cache=checkout_context().cache).python.parent.parent


def plant_changes(release: Path, copy: Path, chosen: Iterable[Plant]) -> Path:
    """Copy an environment, apply some changes, and return the interpreter of the copy."""
    # Hard links: an environment takes up to 0.6 GB.
    shutil.copytree(release, copy, symlinks=True, copy_function=os.link)
    (jax,) = copy.glob(PACKAGES)
    for plant in chosen:
        file = jax / plant.file
        text = file.read_text()
        for before, after in plant.edits:
            assert text.count(before) == 1, f"{plant.file}: {before!r} does not occur exactly once"
            text = text.replace(before, after)
        file.unlink()  # a hard link: writing to it would change the release, too
        file.write_text(text)
    return copy / "bin" / "python"


def run_conformance(*arguments: str) -> int:
    """Run a `conformance` command, and return its status: 1 is expected, as jobs fail."""
    command = [sys.executable, "-m", "conformance", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in {0, 1}, done.stderr
    return done.returncode
