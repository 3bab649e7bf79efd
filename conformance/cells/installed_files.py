"""Files of an environment that are not what was installed there."""

from __future__ import annotations

import math
import subprocess
from typing import TYPE_CHECKING, Final

import msgspec

from conformance.errors import InfrastructureError
from conformance.files import describe_os_error
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

TIMEOUT: Final = 300.0
"""Seconds that looking at every file of an environment may take."""
_JAX: Final = ("jax", "jaxlib")
_LARGEST: Final = 2**20
_NAMED: Final = 3
"""Files that a note names."""
_SCRIPT: Final = """
import base64, csv, hashlib, importlib.metadata, json, pathlib, re, sys
wanted, largest = sys.argv[1].split(), float(sys.argv[2])
found = {}
seen = set()
for dist in importlib.metadata.distributions():
    name = re.sub(r"[-_.]+", "-", dist.metadata["Name"] or "").lower()
    if name in seen:
        continue
    seen.add(name)
    if wanted and name not in wanted:
        continue
    # `dist.files` leaves out the files that are gone since Python 3.12.
    for row in csv.reader((dist.read_text("RECORD") or "").splitlines()):
        file, said, size, *_ = *row, "", "", ""
        mode, _, value = said.partition("=")
        if mode != "sha256" or pathlib.PurePosixPath(file).parts[0] == "..":
            continue
        path = pathlib.Path(dist.locate_file(file))
        try:
            if path.stat().st_size > largest:
                if size not in {"", str(path.stat().st_size)}:
                    found.setdefault(name, []).append(file)
                continue
            data = path.read_bytes()
        except OSError:
            found.setdefault(name, []).append(file)
            continue
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        if digest != value:
            found.setdefault(name, []).append(file)
print(json.dumps({name: sorted(files) for name, files in sorted(found.items())}))
"""


def find_edited_files(
    python: Path, packages: Iterable[str] = (), largest: float = math.inf
) -> dict[str, tuple[str, ...]]:
    """Return the files of an environment that are not as its packages were installed, or are gone.

    Files that no package knows of are not looked at, nor are packages that are read from a folder
    of their source.

    Args:
        python: Its interpreter, run isolated from PYTHONPATH and user site.
        packages: The packages that are looked at, by normalised name; every one by default.
        largest: Bytes of a file up to which its content is compared; of a larger one the size is.

    Returns:
        By package, paths below the folder that it is installed in.

    Raises:
        InfrastructureError: If the interpreter does not run or does not say.
    """
    try:
        done = subprocess.run(
            [python, "-I", "-c", _SCRIPT, " ".join(packages), str(largest)],
            capture_output=True,
            timeout=TIMEOUT,
            check=True,
        )
        return msgspec.json.decode(done.stdout, type=dict[str, tuple[str, ...]])
    except OSError as error:
        raise InfrastructureError(f"{python}: does not run: {describe_os_error(error)}") from error
    except (subprocess.SubprocessError, ValueError) as error:
        raise InfrastructureError(f"{python}: cannot say what is installed: {error}") from error


def describe_edits(python: Path) -> str:
    """Return that jax or jaxlib of an environment was edited after its installation, if it was.

    Such an environment has the version number of a release and does something else. Large binaries
    are compared by size, so that this takes a fraction of a second.

    Args:
        python: Its interpreter.

    Returns:
        The number of files and the first names; empty if the files are as their `RECORD` says.

    Raises:
        InfrastructureError: If the interpreter does not run or does not say.
    """
    edited = find_edited_files(python, _JAX, _LARGEST)
    files = [file for found in edited.values() for file in found]
    if not files:
        return ""
    more = ", ..." if len(files) > _NAMED else ""
    names = ", ".join(files[:_NAMED])
    return (
        f"{plural(len(files), 'file')} of {' and '.join(edited)} not as installed "
        f"({names}{more}): the RECORD of the environment does not match"
    )
