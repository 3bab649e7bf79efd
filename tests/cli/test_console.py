"""The console that commands print on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from conformance.cli.console import open_console

if TYPE_CHECKING:
    import pytest


def test_a_line_stays_one_line_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    """However long, and with its brackets."""
    line = "family/name[bold] " + "word " * 100 + "end"
    open_console().print(line)
    assert capsys.readouterr().out == f"{line}\n"


def test_json_on_standard_output_stands_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """Everything else goes to standard error."""
    open_console(Path("-")).print("told")
    open_console(Path("some.json")).print("printed")
    assert capsys.readouterr() == ("printed\n", "told\n")
