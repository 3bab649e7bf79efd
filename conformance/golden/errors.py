"""The error a golden file can cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.errors import ConformanceError

if TYPE_CHECKING:
    from pathlib import Path


class GoldenError(ConformanceError):
    """A golden file that cannot be trusted: corrupt, missing or edited by hand."""

    @classmethod
    def of(cls, file: Path, found: str, expected: str, remedy: str) -> GoldenError:
        """Return an error in the house's form: where, got, expected, what to do.

        Args:
            file: The file at fault.
            found: What it holds.
            expected: What it should hold.
            remedy: What puts it right.

        Returns:
            The error, to be raised.
        """
        return cls(f"{file}: {found}, expected {expected}; {remedy}")
