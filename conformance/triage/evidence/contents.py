"""Files of an environment that are not what was installed there."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Final

import msgspec

from conformance.errors import InfrastructureError
from conformance.files import said_by

if TYPE_CHECKING:
    from pathlib import Path

TIMEOUT: Final = 300.0
"""Seconds that looking at every file of an environment may take."""
_SCRIPT: Final = """
import base64, csv, hashlib, importlib.metadata, json, pathlib, re
found = {}
seen = set()
for dist in importlib.metadata.distributions():
    name = re.sub(r"[-_.]+", "-", dist.metadata["Name"] or "").lower()
    if name in seen:
        continue
    seen.add(name)
    # `dist.files` leaves out the files that are gone since Python 3.12.
    for row in csv.reader((dist.read_text("RECORD") or "").splitlines()):
        file, said, *_ = *row, "", ""
        mode, _, value = said.partition("=")
        if mode != "sha256" or pathlib.PurePosixPath(file).parts[0] == "..":
            continue
        try:
            data = pathlib.Path(dist.locate_file(file)).read_bytes()
        except OSError:
            found.setdefault(name, []).append(file)
            continue
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        if digest != value:
            found.setdefault(name, []).append(file)
print(json.dumps({name: sorted(files) for name, files in sorted(found.items())}))
"""


def edited_files(python: Path) -> dict[str, tuple[str, ...]]:
    """Return the files of an environment that are not as its packages were installed, or are gone.

    Files that no package knows of are not looked at, nor are packages that are read from a folder
    of their source.

    Args:
        python: Its interpreter, run isolated from PYTHONPATH and user site.

    Returns:
        By package, paths below the folder that it is installed in.

    Raises:
        InfrastructureError: If the interpreter does not run or does not say.
    """
    try:
        done = subprocess.run(
            [python, "-I", "-c", _SCRIPT], capture_output=True, timeout=TIMEOUT, check=True
        )
        return msgspec.json.decode(done.stdout, type=dict[str, tuple[str, ...]])
    except OSError as error:
        raise InfrastructureError(f"{python}: does not run: {said_by(error)}") from error
    except (subprocess.SubprocessError, ValueError) as error:
        raise InfrastructureError(f"{python}: cannot say what is installed: {error}") from error
