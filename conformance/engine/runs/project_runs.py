"""The runs of a project: the folder `reports/runs`, with a directory per run."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from conformance.engine.runs.directory import REPORTS, RUN, RunDirectory
from conformance.errors import UsageError
from conformance.wording import did_you_mean

_SECOND: Final = "%Y%m%d-%H%M%S"
_NAME: Final = re.compile(r"(\d{8}-\d{6}-\d{3})[0-9a-f]{4}")


@dataclass(frozen=True, slots=True)
class ProjectRuns:
    """The runs of a project.

    Attributes:
        root: Folder of the project.
    """

    root: Path

    @property
    def folder(self) -> Path:
        """Folder of the run directories."""
        return self.root / REPORTS / "runs"

    @property
    def ids(self) -> list[str]:
        """Ids of the runs, the oldest first."""
        return sorted(path.parent.name for path in self.folder.glob(f"*/{RUN}"))

    def allocate(self) -> RunDirectory:
        """Return a run directory with a new name, without creating it.

        Names sort in the order of the runs, even within the same second. After the clock was set
        back, names continue from the last one.
        """
        now = max(datetime.now(UTC), self._parse_last_time() + timedelta(milliseconds=1))
        # Random digits: two runs may start in the same millisecond.
        name = f"{now:{_SECOND}}-{now.microsecond // 1000:03d}{secrets.token_hex(2)}"
        return RunDirectory(self.folder / name)

    def _parse_last_time(self) -> datetime:
        """Return the time in the last name of a run."""
        names = (_NAME.fullmatch(path.name) for path in self.folder.glob("*"))
        last = max((name[1] for name in names if name), default="")
        try:
            return datetime.strptime(last, f"{_SECOND}-%f").replace(tzinfo=UTC)
        except ValueError:  # no run yet, or a name of digits that is no time
            return datetime.min.replace(tzinfo=UTC)

    def find_latest(self) -> RunDirectory:
        """Return the newest run.

        Raises:
            UsageError: If there is no run.
        """
        ids = self.ids
        if not ids:
            raise UsageError(
                f"{self.folder} holds no run, expected one; `conformance run` makes it"
            )
        return RunDirectory(self.folder / ids[-1])

    def find(self, name: str) -> RunDirectory | None:
        """Return the run that a directory or an id names, None if there is none."""
        # A path wins over an id: shells complete paths, and an id can also be given as a path.
        paths = (Path(name), self.folder / name)
        return next((RunDirectory(path) for path in paths if (path / RUN).is_file()), None)

    def open(self, name: str | None = None) -> RunDirectory:
        """Return a recorded run.

        Args:
            name: Its directory or its id; None is the newest run of the project.

        Raises:
            UsageError: If there is no such run; the message suggests the nearest.
        """
        if name is None:
            return self.find_latest()
        run = self.find(name)
        if run is None and Path(name).is_dir():
            # A damaged run may lack run.json: reading it reports which file is missing or broken.
            return RunDirectory(Path(name))
        if run is None:
            raise UsageError(self.describe_missing(name))
        return run

    def describe_missing(self, name: str) -> str:
        """Return the message for a name that is no run."""
        if Path(name).is_dir():
            return f"{name} is a folder without {RUN}, expected a run"
        near = did_you_mean(name, self.ids)
        return f"{name}: no such run{near}, expected its folder or its id"
