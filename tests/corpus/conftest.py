"""Fixtures that write case files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest

from conformance.corpus.discovery import discover, find_case_files

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.model.case import Case


class Write(Protocol):
    """Function that writes case files below the folder of cases."""

    def __call__(self, **files: str) -> tuple[Case, ...]:
        """Write files, `family__topic=source`, and return the cases of them all."""


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    """A folder of families."""
    folder = tmp_path / "cases"
    folder.mkdir()
    return folder


@pytest.fixture
def write(cases: Path) -> Write:
    """A function that writes case files and discovers their cases."""

    def write_cases(**files: str) -> tuple[Case, ...]:
        for name, source in files.items():
            family, _, topic = name.partition("__")
            file = cases / family / f"{topic}.py"
            file.parent.mkdir(exist_ok=True)
            file.write_text(source)
        return discover(find_case_files(cases))

    return write_cases
