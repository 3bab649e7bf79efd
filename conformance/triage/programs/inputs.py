"""Files of the user's own that decide what a program does: those that it read."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from conformance.kit.instrumentation import sitecustomize

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

INSTRUMENTATION: Final = Path(sitecustomize.__file__).parent
"""Folder for PYTHONPATH, which makes Python note what it reads."""
ARTIFACT: Final = "inputs"
"""Artifact of a record with the files that a program read."""
_ABSENT: Final = ""
_FOREIGN: Final = frozenset({"site-packages", "dist-packages", ".git"})
_CACHE: Final = "__pycache__"


def inputs_of(note: Path, roots: Iterable[Path]) -> dict[str, str]:
    """Return what a program read of the user's own, as it is now.

    Args:
        note: What the processes of the program noted.
        roots: Folders in which files are the user's own: the working directory, and that of a
            script. What is installed there is not.

    Returns:
        Hash by absolute path; empty for a file that was not there. Without the files that the
        program itself wrote: they follow from the others.
    """
    try:
        lines = note.read_bytes().splitlines()
    except OSError:  # nothing of it was Python, or it was ended before its start
        return {}
    folders = tuple(root.resolve() for root in roots)
    read: set[Path] = set()
    written: set[Path] = set()
    for line in lines:
        try:
            name, writes = msgspec.json.decode(line, type=tuple[str, bool])
        except msgspec.DecodeError:  # killed while it wrote
            continue
        file = _source(Path(name))
        if any(file.is_relative_to(folder) for folder in folders) and not _is_foreign(file):
            (written if writes else read).add(file)
    return {str(file): _hash(file) for file in sorted(read - written) if not file.is_dir()}


def encode_inputs(inputs: Mapping[str, str]) -> bytes:
    """Return the artifact of some inputs."""
    return msgspec.json.encode(inputs, order="sorted")


def decode_inputs(data: bytes) -> dict[str, str]:
    """Return the inputs of an artifact: hash by absolute path, empty for a file that was not there.

    Args:
        data: As `encode_inputs` returns it.
    """
    return msgspec.json.decode(data, type=dict[str, str])


def are_unchanged(data: bytes) -> bool:
    """Say whether every file is what it was when the program read it.

    Args:
        data: As `encode_inputs` returns it.
    """
    return all(_hash(Path(name)) == content for name, content in decode_inputs(data).items())


def _source(file: Path) -> Path:
    """Return the module of a compiled one, the file itself where it is none."""
    if file.suffix != ".pyc" or file.parent.name != _CACHE:
        return file
    return file.parent.parent / f"{file.name.partition('.')[0]}.py"


def _is_foreign(file: Path) -> bool:
    return any(part in _FOREIGN for part in file.parts)


def _hash(file: Path) -> str:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()[:32]
    except OSError:
        return _ABSENT
