"""The command of `conformance scan --run`, and the files that it ran."""

from __future__ import annotations

import math
import os
from collections import defaultdict
from contextlib import closing
from importlib.metadata import distributions
from pathlib import Path
from typing import TYPE_CHECKING, Final

from conformance.engine.input_files import INSTRUMENTATION
from conformance.errors import UsageError
from conformance.files import describe_os_error
from conformance.report.grouping import group_by
from conformance.scan.code_base import name_module
from conformance.scan.notebooks import SUFFIX
from conformance.scan.reached import ReachedCode, ReachedFile, ReachedUses
from conformance.scan.result import ScanRun
from conformance.scratch import Scratch
from conformance.triage.programs import process
from conformance.worker.instrumentation.sitecustomize import REACHED

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from conformance.triage.programs.process import CompletedProgram

NOT_FOUND: Final = 127
"""Exit status of a shell that does not find the command."""
LONGEST: Final = 200
"""Characters of the last line of an output that are shown."""
_SITES: Final = frozenset({"site-packages", "dist-packages"})


def run_command(command: str, timeout: float | None) -> ScanRun:
    """Run a command in the user's environment, and return what it reached.

    Args:
        command: The command line, for a shell.
        timeout: Timeout in seconds, None for no limit.

    Raises:
        UsageError: If no process can be started.
    """
    with closing(Scratch("scan")) as scratch:
        path = filter(None, (str(INSTRUMENTATION), os.environ.get("PYTHONPATH", "")))
        variables = {"PYTHONPATH": os.pathsep.join(path), REACHED: str(scratch.path)}
        try:
            done = process.run(
                ["/bin/sh", "-c", command],
                environment={**os.environ, **variables},
                timeout=math.inf if timeout is None else timeout,
            )
        except OSError as error:
            raise UsageError(
                f"--run {command}: cannot be run: {describe_os_error(error)}"
            ) from error
        code = ReachedCode()
        for file in sorted(scratch.path.iterdir()):
            code.add(file.read_bytes())
    code.files = {os.path.realpath(name): file for name, file in code.files.items()}
    return ScanRun(
        command=command, exit=done.exit, ended=_describe_end(done, timeout), seconds=done.seconds,
        code=code,
    )  # fmt: skip


def _describe_end(done: CompletedProgram, timeout: float | None) -> str:
    """Return why a program did not succeed, empty if it did."""
    if done.cut == "timeout":
        return f"took more than {timeout:g} s and was ended"
    if done.cut:
        return f"printed more than {process.LARGEST >> 20} MiB and was ended"
    if done.signal is not None:
        return f"was ended by signal {done.signal}"
    if done.exit == 0:
        return ""
    output = (done.stdout.strip() or done.stderr.strip()).decode("utf-8", "replace")
    if done.exit == NOT_FOUND:
        output = done.stderr.decode("utf-8", "replace").strip()
    last = output.splitlines()[-1].strip("= ")[:LONGEST] if output else "no output"
    return f"ended with exit status {done.exit}: {last}"


class RunFiles:
    """The files that a command ran, held against those of a code base.

    Args:
        code: The code that ran.
        own: Files of the code base.
    """

    def __init__(self, code: ReachedCode, own: Sequence[Path]) -> None:
        self._code = code
        by_name = group_by(code.files, key=os.path.basename)
        self._ran = {file: _find_ran(file, code, by_name.get(file.name, ())) for file in own}

    def open(self, file: Path) -> ReachedUses | None:
        """Return what was reached of a file, None if that cannot be known.

        Args:
            file: A file of the code base, or one that ran.
        """
        if not self._code.processes or file.suffix == SUFFIX:
            return None
        ran = self._ran.get(file, str(file))
        return ReachedUses(self._code, self._code.files.get(ran, ReachedFile()), file.read_bytes())

    def list_libraries(self) -> dict[Path, str]:
        """Return the other files of packages that name JAX, with their distribution and version."""
        others = [Path(name) for name in self._code.files.keys() - {*self._ran.values()}]
        packages = defaultdict(list)
        users = set()
        for file in others:
            if file.suffix == ".py" and file.is_file():
                package = name_module(file)[0].partition(".")[0]
                packages[package].append(file)
                if b"jax" in file.read_bytes():
                    users.add(package)
        return _name_distributions(file for package in sorted(users) for file in packages[package])


def _find_ran(file: Path, code: ReachedCode, candidates: Iterable[str]) -> str:
    """Return the path by which a file ran: it may have been installed as a copy."""
    real = os.path.realpath(file)
    if real in code.files:
        return real
    name = name_module(file)
    for candidate in map(Path, candidates):
        same_name = name_module(candidate) == name and candidate.is_file()
        if same_name and candidate.read_bytes() == file.read_bytes():
            return str(candidate)
    return real


def _name_distributions(files: Iterable[Path]) -> dict[Path, str]:
    """Return the distribution and the version of each file, empty if it is in none."""
    names: dict[Path, str] = {}
    for site, inside in group_by(files, key=_find_site).items():
        names |= dict.fromkeys(inside, "")
        for one in distributions(path=[str(site)]) if site is not None else ():
            record = one.read_text("RECORD") or ""
            owned = {line.partition(",")[0] for line in record.splitlines()}
            own = [file for file in inside if site and file.relative_to(site).as_posix() in owned]
            if own:
                names |= dict.fromkeys(own, f"{one.name} {one.version}")
    return names


def _find_site(file: Path) -> Path | None:
    return next((folder for folder in file.parents if folder.name in _SITES), None)
