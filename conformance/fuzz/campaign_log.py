"""The log of a campaign: settings, rounds and findings, from which an interrupted one continues."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from conformance.errors import UsageError
from conformance.files import (
    MALFORMED,
    describe_os_error,
    disk_error,
    read_regular,
    write_atomically,
)
from conformance.fuzz.finding import Finding
from conformance.json_lines import MalformedLineError, append_line, decode_log, open_log

if TYPE_CHECKING:
    from pathlib import Path

T = TypeVar("T")
SETTINGS: Final = "campaign.json"
ROUNDS: Final = "rounds.jsonl"
FINDINGS: Final = "findings.jsonl"


class CampaignSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that decide which programs a campaign tries, and where.

    Attributes:
        seed: Seed of the generation.
        cells: Ids of the cells, the oldest release first.
        operations: Patterns of operations; empty for all.
        hypothesis: Release of Hypothesis, which decides what a seed generates.
    """

    seed: int
    cells: tuple[str, ...]
    operations: tuple[str, ...] = ()
    hypothesis: str


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """One round of a campaign.

    Attributes:
        number: Number, from 0.
        x64: Whether 64-bit types were enabled.
        programs: Ids of its programs.
        outcomes: Programs by outcome on the newest release.
        divergent: Programs that diverged.
        seconds: Seconds of the evaluation of its programs.
        total_seconds: Seconds of the round, findings included.
    """

    number: int
    x64: bool
    programs: tuple[str, ...]
    outcomes: dict[str, int]
    divergent: int
    seconds: float
    total_seconds: float


@dataclass(slots=True)
class CampaignLog:
    """The log of a campaign in its folder.

    Attributes:
        folder: Folder of the campaign.
        settings: Its settings.
        rounds: Finished rounds.
        findings: Findings by id.
    """

    folder: Path
    settings: CampaignSettings
    rounds: list[Round] = field(default_factory=list)
    findings: dict[str, Finding] = field(default_factory=dict)

    @classmethod
    def create(cls, folder: Path, settings: CampaignSettings) -> CampaignLog:
        """Create a folder and its log.

        Args:
            folder: A folder without a campaign.
            settings: The settings.

        Raises:
            UsageError: If the folder has a campaign.
        """
        if (folder / SETTINGS).exists():
            raise UsageError(f"{folder} has a campaign: add --resume, or name another folder")
        write_atomically(folder / SETTINGS, msgspec.json.encode(settings) + b"\n")
        return cls(folder, settings)

    @classmethod
    def load(cls, folder: Path) -> CampaignLog:
        """Load a log; a last line that a killed process has not finished is dropped.

        Args:
            folder: Folder of the campaign.

        Raises:
            UsageError: If the folder has no campaign, or its log is malformed.
        """
        try:
            settings = msgspec.json.decode((folder / SETTINGS).read_bytes(), type=CampaignSettings)
        except FileNotFoundError:
            raise UsageError(f"{folder} has no campaign: expected {SETTINGS}") from None
        except MALFORMED as error:
            raise UsageError(f"{folder / SETTINGS}: {error}; expected a campaign") from None
        log = cls(folder, settings)
        log.rounds = _read(folder / ROUNDS, Round)
        for finding in _read(folder / FINDINGS, Finding):
            log.findings[finding.id] = finding
        return log

    def add_round(self, done: Round) -> None:
        """Append a finished round.

        Raises:
            InfrastructureError: If the disk refuses; the log is unchanged.
        """
        _append(self.folder / ROUNDS, done)
        self.rounds.append(done)

    def add_finding(self, finding: Finding) -> None:
        """Append a finding, or another state of one: the last line of an id counts.

        Raises:
            InfrastructureError: If the disk refuses; the log is unchanged.
        """
        _append(self.folder / FINDINGS, finding)
        self.findings[finding.id] = finding

    @property
    def tried(self) -> frozenset[str]:
        """Ids of all programs of finished rounds."""
        return frozenset(id_ for done in self.rounds for id_ in done.programs)


def _append(file: Path, line: msgspec.Struct) -> None:
    try:
        descriptor = open_log(file)
        try:
            # A round takes a minute or more, and a finding is shrunk for as long.
            append_line(descriptor, msgspec.json.encode(line), durable=True)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise disk_error(file, error) from None


def _read(file: Path, kind: type[T]) -> list[T]:
    try:
        return decode_log(read_regular(file), kind)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {describe_os_error(error)}") from None
    except MalformedLineError as error:
        raise UsageError(
            f"{file}:{error.number}: expected a {kind.__name__}: {error.reason.lower()}; "
            "delete the line"
        ) from None
