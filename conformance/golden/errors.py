"""The error of a golden file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.errors import ConformanceError

if TYPE_CHECKING:
    from pathlib import Path


class GoldenError(ConformanceError):
    """A golden file that cannot be trusted: corrupt, missing or edited by hand."""

    @classmethod
    def of(cls, file: Path, found: str, expected: str, remedy: str) -> GoldenError:
        """Return an error with the file, its content, the expectation and the remedy.

        Args:
            file: The faulty file.
            found: Description of its content.
            expected: Description of the expected content.
            remedy: Instruction that repairs it.

        Returns:
            The error, to be raised.
        """
        return cls(f"{file}: {found}, expected {expected}; {remedy}")
