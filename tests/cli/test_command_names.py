"""Suggestions for misspelt subcommands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.cli import main

if TYPE_CHECKING:
    import pytest


def test_misspelt_command_proposes_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    """`rnu` proposes `run`."""
    assert main(["rnu"]) == 2
    assert "no command 'rnu' (did you mean 'run'" in capsys.readouterr().err
