"""Made-up release tables, locks, wheels and interpreters."""

from __future__ import annotations

import base64
import hashlib
import sys
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.cells.lock import MAGIC, Lock, get_host
from conformance.cells.releases import Release, Releases

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.cells.cell import Cell

CHECKOUT = Path(__file__).resolve().parents[2]
MATRICES = CHECKOUT / "matrix"
HERE = "{}.{}".format(*sys.version_info[:2])


def release(version: str, pythons: tuple[str, ...] = ("3.11", "3.12")) -> Release:
    """Return a release whose jaxlib has its own number."""
    return Release(
        version=version,
        date=datetime(2025, 1, 31, 22, 30, tzinfo=UTC),
        requires_python=f">={pythons[0]}",
        jaxlib=version,
        jaxlib_requires=f"=={version}",
        pythons=pythons,
    )


def table(*versions: str) -> Releases:
    """Return a table of releases, `new` ones (from 0.11) for Python 3.12 and later only."""
    rows = tuple(
        release(v, ("3.12", "3.13")) if int(v.split(".")[1]) >= 11 else release(v) for v in versions
    )
    return Releases(rows=rows, path=Path("releases.toml"), yanked={"0.4.32": "broken"})


def make_wheel(
    folder: Path,
    name: str,
    version: str,
    requires: str = "",
    tag: str = "py3-none-any",
    *,
    files: Mapping[str, str] | None = None,
) -> str:
    """Write a wheel with one module, or with some files, into a folder; return its SHA-256.

    It requires one package or several, separated by semicolons.
    """
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    metadata += "".join(f"Requires-Dist: {one}\n" for one in requires.split(";") if one)
    files = {
        **(files or {f"{name}/__init__.py": f"__version__ = '{version}'\n"}),
        f"{info}/METADATA": metadata,
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n",
    }
    record = "".join(f"{path},sha256={_digest(text)},{len(text)}\n" for path, text in files.items())
    files[f"{info}/RECORD"] = record + f"{info}/RECORD,,\n"
    path = folder / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for file, text in files.items():
            # A fixed time: the same wheel has the same hash.
            wheel.writestr(zipfile.ZipInfo(file), text)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def make_lock(cell: Cell, pins: dict[str, tuple[str, str]], hosts: str = "") -> Lock:
    """Return a lock of `name -> (version, sha256)`, for this host by default."""
    lines = [
        f"# {MAGIC}",
        f"# environment: {cell.env_id}",
        f"# python: {cell.python}",
        f"# hosts: {hosts or get_host()}",
        *(f"{n}=={v} \\\n    --hash=sha256:{sha}" for n, (v, sha) in pins.items()),
    ]
    return Lock(text="\n".join(lines) + "\n", path=Path("made-up-lock.txt"))


def make_python(path: Path, script: str) -> Path:
    """Write an executable shell script in place of an interpreter."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path
