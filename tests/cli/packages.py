"""A small user package, `mine`, that builds without a package index."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

WANTS = "jax>=0.6.1"
PROJECT = """\
[project]
name = "mine"
version = "1.0"
dependencies = ["jax>=0.6.1"]

[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""
BACKEND = """\
import pathlib, zipfile


def build_wheel(folder, *_):
    name = "mine-1.0-py3-none-any.whl"
    info = "mine-1.0.dist-info/"
    with zipfile.ZipFile(f"{folder}/{name}", "w") as files:
        for module in pathlib.Path().rglob("*.py"):
            files.write(module)
        files.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: mine\\nVersion: 1.0\\n"
                       "Requires-Dist: jax>=0.6.1\\n")
        files.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\n"
                       "Tag: py3-none-any\\n")
        files.writestr(info + "RECORD", "")
    return name
"""


def package_files(
    modules: Mapping[str, str], folder: str = ".", more: str = "", *, wants: str = WANTS
) -> dict[str, str]:
    """Return the files of the package `mine`.

    Args:
        modules: Source of each module, by file name.
        folder: Folder of the package, relative to the project.
        more: Text appended to its `pyproject.toml`.
        wants: Its requirement on jax.
    """
    project, backend = (text.replace(WANTS, wants) for text in (PROJECT, BACKEND))
    files = {"pyproject.toml": project + more, "backend.py": backend, **modules}
    return {f"{folder}/{name}": text for name, text in files.items()}


def write_wheel(folder: Path, version: str, wants: str, source: str) -> None:
    """Write a wheel of the package `mine` into a folder for UV_FIND_LINKS.

    Args:
        folder: The folder, created if it is missing.
        version: Version of the package.
        wants: Its requirement on jax.
        source: Source of its only module.
    """
    folder.mkdir(exist_ok=True)
    info = f"mine-{version}.dist-info"
    with zipfile.ZipFile(folder / f"mine-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr("mine.py", source)
        head = f"Metadata-Version: 2.1\nName: mine\nVersion: {version}\n"
        wheel.writestr(f"{info}/METADATA", f"{head}Requires-Dist: {wants}\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
