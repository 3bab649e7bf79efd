"""Files of the user that a program reads, and on which its result depends."""

from __future__ import annotations

import hashlib
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from conformance.corpus.project import PACKAGE
from conformance.engine.cache.blobs import CorruptBlobError
from conformance.files import MALFORMED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from conformance.engine.cache.blobs import BlobStore
    from conformance.model.record import Record

INSTRUMENTATION: Final = PACKAGE / "worker" / "instrumentation"
"""Folder for PYTHONPATH with the hook that records opened files."""
READ_FILES: Final = "inputs"
"""Artifact of a record with the files that a program, or a test, read."""
LARGE: Final = 2**23
"""Bytes from which a file is identified by size and time instead of its content."""
_ABSENT: Final = ""
# Installed packages are covered by the lock of the cell.
_FOREIGN: Final = frozenset({"site-packages", "dist-packages", ".git"})
_CACHE: Final = "__pycache__"


def collect_inputs(note: Path, roots: Iterable[Path]) -> dict[str, str]:
    """Return the current hashes of the user's files that a program read.

    Args:
        note: File in which the processes of the program noted the files that they opened.
        roots: Folders of the user's files: the working directory, and the folder of a script.
            Packages installed below them do not count.

    Returns:
        Hash by absolute path; empty for a file that does not exist. Without files that the
        program itself wrote: their content follows from the others.
    """
    try:
        lines = note.read_bytes().splitlines()
    except OSError:  # no process of it was Python, or it was ended before its start
        return {}
    read: set[str] = set()
    written: set[str] = set()
    for line in lines:
        try:
            name, writes = msgspec.json.decode(line, type=tuple[str, bool])
        except msgspec.DecodeError:  # killed while it wrote
            continue
        (written if writes else read).add(name)
    folders = tuple(root.resolve() for root in roots)
    # A missing file counts as well: the program may do something else once it exists.
    files = {_find_source(Path(name)) for name in read - written}
    return hash_inputs(
        file
        for file in files
        if any(file.is_relative_to(folder) for folder in folders)
        and _FOREIGN.isdisjoint(file.parts)
    )


def hash_inputs(files: Iterable[Path]) -> dict[str, str]:
    """Return the current hash of each file by absolute path; empty for a missing file.

    Args:
        files: Absolute paths; folders are left out.
    """
    return {str(file): _hash_if_present(file) for file in sorted(files) if not file.is_dir()}


def encode_inputs(inputs: Mapping[str, str]) -> bytes:
    """Return inputs as the content of an artifact."""
    return msgspec.json.encode(inputs, order="sorted")


def decode_inputs(data: bytes) -> dict[str, str]:
    """Return the inputs of an artifact: hash by absolute path, empty for a missing file.

    Args:
        data: Content of the artifact, see `encode_inputs`.
    """
    return msgspec.json.decode(data, type=dict[str, str])


def has_same_inputs(record: Record, blobs: BlobStore) -> bool:
    """Return whether all files that a program or a test read are unchanged.

    Args:
        record: Record of the program or test.
        blobs: Artifacts of the record.

    Returns:
        True only if the files are known to be unchanged, or if the record names none: the hash of a
        case covers its files.
    """
    if READ_FILES not in record.artifacts:
        return True
    try:
        return are_unchanged(decode_inputs(blobs.get(record.artifacts[READ_FILES])))
    except (CorruptBlobError, *MALFORMED):
        return False


def are_unchanged(inputs: Mapping[str, str]) -> bool:
    """Return whether every file is unchanged.

    Args:
        inputs: Hash by absolute path, see `hash_inputs`.
    """
    return all(_hash_if_present(Path(name)) == content for name, content in inputs.items())


def _find_source(file: Path) -> Path:
    """Return the source file of a bytecode file, any other file itself."""
    # Python opens only the bytecode of an unchanged module.
    if file.suffix != ".pyc" or file.parent.name != _CACHE:
        return file
    return file.parent.parent / f"{file.name.partition('.')[0]}.py"


def hash_content(file: Path) -> str:
    """Return the hash of a file's content; of a large file, its size and modification time.

    Args:
        file: The file; a pipe or a device always has the same hash.

    Raises:
        OSError: If the file cannot be read.
    """
    state = file.stat()
    if not stat.S_ISREG(state.st_mode):
        return "no file"
    if state.st_size >= LARGE:
        return f"{state.st_size} {state.st_mtime_ns}"
    return hashlib.sha256(file.read_bytes()).hexdigest()[:32]


def _hash_if_present(file: Path) -> str:
    try:
        return hash_content(file)
    except OSError:
        return _ABSENT
