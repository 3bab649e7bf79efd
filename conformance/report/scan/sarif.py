"""A scan in SARIF 2.1.0, the format of code scanning on GitHub, GitLab and in editors.

Source: OASIS, Static Analysis Results Interchange Format 2.1.0, sections 3.13 to 3.52.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from conformance import __version__
from conformance.model.upstream import find_thread_url
from conformance.report.scan.text import TITLES
from conformance.scan.hits import HitKind

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.scan.result import FileHit, ScanResult

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
TOOL: Final = "conformance scan"


def make_scan_sarif(result: ScanResult, folder: Path) -> dict[str, Any]:
    """Return a scan as data of SARIF.

    Args:
        result: The scan.
        folder: Folder to which the paths of files are relative, the checkout for most; files
            elsewhere have whole paths.
    """
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": TOOL,
                        "version": __version__,
                        "rules": [
                            {
                                "id": kind.value,
                                "shortDescription": {"text": title},
                                "defaultConfiguration": {"level": _find_level(kind, loud=True)},
                            }
                            for kind, title in TITLES.items()
                        ],
                    }
                },
                "invocations": [
                    {
                        "executionSuccessful": True,
                        "toolExecutionNotifications": [
                            {
                                "level": "warning",
                                "message": {"text": problem},
                                "locations": [{"physicalLocation": _make_file(file, folder)}],
                            }
                            for file, problem in result.unreadable.items()
                        ],
                    }
                ],
                "columnKind": "utf16CodeUnits",
                "results": [_make_result(one, folder) for one in result.hits],
                "properties": {"from": result.old, "to": result.new},
            }
        ],
    }


def _make_result(place: FileHit, folder: Path) -> dict[str, Any]:
    hit, change = place.hit, place.hit.change
    texts = [f"{hit.text} (jax {hit.release})"]
    if change is not None:
        thread = find_thread_url(change.source) or change.source
        texts += [*filter(None, [change.advice]), f"{change.cases[0]} {thread}"]
    # A file of a notebook is JSON: its lines are not those of the cell.
    line = place.cell.file_line if place.cell is not None else place.line
    column = {} if place.cell is not None else {"startColumn": place.column}
    region = {"region": {"startLine": line, **column}}
    return {
        "ruleId": hit.kind.value,
        "level": _find_level(hit.kind, loud=hit.is_loud),
        "message": {"text": "\n".join(texts)},
        "locations": [{"physicalLocation": {**_make_file(place.file, folder), **region}}],
        "properties": {"name": hit.name, "release": hit.release, "loud": hit.is_loud},
    }


def _find_level(kind: HitKind, *, loud: bool) -> str:
    """Return the level of a hit: an error for code that raises, a note for code that warns."""
    if kind is HitKind.DEPRECATED:
        return "note"
    return "error" if loud and kind not in {HitKind.POSITION, HitKind.DEFAULT} else "warning"


def _make_file(file: Path, folder: Path) -> dict[str, Any]:
    whole = file.absolute()
    if whole.is_relative_to(folder):
        path = quote(whole.relative_to(folder).as_posix())
        return {"artifactLocation": {"uri": path, "uriBaseId": "%SRCROOT%"}}
    return {"artifactLocation": {"uri": whole.as_uri()}}
