"""Where the files of a run are on a node: case files, and artifacts that the run can read."""

from __future__ import annotations

import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from conformance.cluster.messages import JobReport
from conformance.engine.cache.blobs import BLOBS, BlobStore, hash_blob, open_shared_cache
from conformance.engine.record_judge import make_infra_end, make_record
from conformance.errors import ConformanceError, InfrastructureError

if TYPE_CHECKING:
    from conformance.cluster.messages import ContentPlace
    from conformance.engine.job import FinishedJob

FOLDER: Final = "cluster"
"""Folder of the cache with the tokens of runs, and with case files on nodes."""
TOKENS: Final = "tokens"
OLD: Final = 7 * 86_400.0
"""Seconds after which case files on a node, and the token of a killed run, are removed."""


class NodeRefusalError(ConformanceError):
    """A batch that this node cannot run, and another node may.

    Args:
        reason: The reason.
        lacks_accelerator: Whether an accelerator is missing.
        broken: Whether the node can run no job at all.
    """

    def __init__(
        self, reason: str, *, lacks_accelerator: bool = False, broken: bool = False
    ) -> None:
        super().__init__(reason)
        self.lacks_accelerator = lacks_accelerator
        self.broken = broken


def has_content(path: Path, content: bytes) -> bool:
    """Return whether a file exists and has some content."""
    try:
        return path.read_bytes() == content
    except OSError:
        return False


def shares_files(content: ContentPlace) -> bool:
    """Return whether this node sees the cache folder of the run, by the token in it."""
    return has_content(get_token_file(content), content.token.encode())


def get_token_file(content: ContentPlace) -> Path:
    """Return the file by which nodes recognise the cache folder of a run.

    Args:
        content: Place of artifacts.
    """
    return Path(content.folder) / FOLDER / TOKENS / content.token


def remove_old_entries(folder: Path) -> None:
    """Remove the files and folders in a folder that have not been used for a week.

    Args:
        folder: Folder of case files, or of tokens; need not exist.
    """
    for path in folder.glob("*"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime < OLD:
                continue
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()


class Recorder:
    """Makes records, and puts artifacts where the run can read them.

    Args:
        content: Place of artifacts.
        cache: Cache folder of the node.

    Attributes:
        shared: Whether the run sees the folder in which this node puts them.
    """

    def __init__(self, content: ContentPlace, cache: Path) -> None:
        self.shared = shares_files(content)
        self._remote = None
        if content.url and not self.shared:
            self._remote = open_shared_cache(content.url, write=True)
        self._blobs = BlobStore((Path(content.folder) if self.shared else cache) / BLOBS)

    def report(self, finished: FinishedJob) -> JobReport:
        """Return the report of a finished job.

        Raises:
            NodeRefusalError: If the disk refuses.
        """
        try:
            try:
                record = make_record(finished, self._blobs)
            except InfrastructureError:
                raise
            except Exception as error:  # noqa: BLE001 - a job may report anything
                finished = make_infra_end(finished.job, error)
                record = make_record(finished, self._blobs)
        except InfrastructureError as error:
            raise NodeRefusalError(str(error), broken=True) from None
        if self.shared:
            return JobReport(record)
        artifacts = {hash_blob(data): data for data in finished.blobs.values()}
        if self._remote is not None and self._remote.put_contents(artifacts) >= artifacts.keys():
            return JobReport(record, uploaded=True)
        # Without a cache, or with one that does not answer, they travel with the record.
        return JobReport(record, artifacts)
