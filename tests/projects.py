"""Projects made of a `{filename: text}` mapping, with the real command line."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.cli import main
from conformance.engine.runs.directory import RunDirectory

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest

    from conformance.model.record import Record

ROOT = Path(__file__).resolve().parents[1]
RELEASE = "0.6.2"
CELL = f"jax{RELEASE}-py311-cpu8"
ENVIRONMENT = f"jax{RELEASE}-py311"
LOCKED = ("0.6.0", "0.6.1", RELEASE)
"""Releases whose locks a project has: many tests search between them, and resolving takes long."""
SMOKE = f"""\
[matrix]
axes = {{ jax = ["{RELEASE}"] }}
"""
GOOD = """\
import numpy as np
from conformance.kit import Observed, Program, deviation, probe, program


@probe()
def one(env):
    return Observed(np.float32([1, 2]), reference=np.float32([1, 2]))


@probe()
def two(env):
    return Observed(np.int32(3), reference=np.int32(3))
"""
HEAD, ONE, TWO = GOOD.split("\n\n\n")
"""`GOOD` in parts: imports, and two cases that conform."""
PROGRESS = re.compile(r"^([a-z ]+: )?[\d,]+ (of [\d,]+ )?jobs? done\b.*\n", re.MULTILINE)


def without_progress(output: str) -> str:
    """Drop the lines of progress, which a command prints after half a minute: on a slow host."""
    return PROGRESS.sub("", output)


def case(body: str, decorator: str = "probe()", name: str = "case") -> str:
    """Return a case file with one case."""
    lines = "\n    ".join(body.splitlines())
    return f"{HEAD}\n\n\n@{decorator}\ndef {name}(env):\n    {lines}\n"


@dataclass(frozen=True)
class Ending:
    """Exit status and output of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output, parsed as JSON."""
        return json.loads(self.out)

    @property
    def error(self) -> str:
        """The only line of standard error, without the name of the program."""
        (line,) = self.err.splitlines()
        assert line.startswith("conformance: ")
        return line.removeprefix("conformance: ")


@dataclass(frozen=True)
class Project:
    """A temporary project in which commands are run.

    Attributes:
        path: The folder; the working directory of its commands.
        capsys: Fixture that captures their output.
    """

    path: Path
    capsys: pytest.CaptureFixture[str]

    def run(self, *arguments: str | Path) -> Ending:
        """Run a `conformance` command in this process, in the project."""
        # Output of fixtures and of earlier commands is not output of this one.
        self.capsys.readouterr()
        before = Path.cwd()
        os.chdir(self.path)
        try:
            code = main([str(argument) for argument in arguments])
        finally:
            os.chdir(before)
        captured = self.capsys.readouterr()
        return Ending(int(code), captured.out, without_progress(captured.err))

    def start(self, *arguments: str | Path, **options: Any) -> subprocess.Popen[str]:
        """Start a `conformance` command as a separate process."""
        return subprocess.Popen(
            [sys.executable, "-m", "conformance", *map(str, arguments)],
            cwd=self.path,
            env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

    def results(self, *arguments: str | Path) -> tuple[int, dict[str, Record]]:
        """Run cases, and return the exit status and the records by case name."""
        ending = self.run("run", *arguments)
        records = self.newest.read_records()
        return ending.code, {record.case.rpartition("/")[2]: record for record in records}

    @property
    def newest(self) -> RunDirectory:
        """The newest run directory."""
        # Tests name runs freely, so their names have no order.
        runs = (self.path / "reports" / "runs").iterdir()
        return RunDirectory(max(runs, key=lambda path: path.stat().st_mtime_ns))

    @property
    def runs(self) -> list[Path]:
        """Every run directory."""
        return sorted((self.path / "reports" / "runs").glob("*"))

    def write(self, files: Mapping[str, str]) -> None:
        """Write files below the project."""
        write_files(self.path, files)

    def golden(self, pattern: str) -> Path:
        """Return the only golden file that matches a pattern, of any family."""
        (file,) = self.path.glob(f"cases/*/golden/*/{pattern}")
        return file


def make_project(
    path: Path, files: Mapping[str, str], capsys: pytest.CaptureFixture[str]
) -> Project:
    """Make a project of one release and some files; see `write_project`."""
    write_project(path, files)
    return Project(path, capsys)


def write_project(path: Path, files: Mapping[str, str]) -> None:
    """Write a project of one release and some files, with the locks of `LOCKED`."""
    matrix = path / "matrix"
    (matrix / "locks").mkdir(parents=True)
    (path / "cases").mkdir()
    shutil.copy(ROOT / "matrix" / "releases.toml", matrix)
    for release in LOCKED:
        shutil.copy(ROOT / "matrix" / "locks" / f"jax{release}-py311.txt", matrix / "locks")
    write_files(path, {"matrix/smoke.toml": SMOKE, **files})


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write files below a folder, each by its path."""
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
