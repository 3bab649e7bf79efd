"""Names of subcommands on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.cli import main

if TYPE_CHECKING:
    import pytest


def test_a_mistyped_command_is_corrected(capsys: pytest.CaptureFixture[str]) -> None:
    """`rnu` proposes `run`."""
    assert main(["rnu"]) == 2
    assert "no command 'rnu' (did you mean 'run'" in capsys.readouterr().err
