"""Lines and JSON written by commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.cli.output import Output, open_console

if TYPE_CHECKING:
    import pytest


def test_long_line_is_not_wrapped_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    """Brackets and colons are not interpreted as markup."""
    line = "family/name[bold] :a: " + "word " * 100 + "end"
    open_console().print(line)
    assert capsys.readouterr().out == f"{line}\n"


def test_json_on_stdout_moves_text_to_stderr(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The text form of a query is omitted."""
    Output(Path("-")).print("progress")
    Output(Path("-")).show([1], ["one"])
    assert capsys.readouterr() == ("[\n 1\n]\n", "progress\n")
    Output(tmp_path / "some.json").show([1], ["one"])
    assert capsys.readouterr() == ("one\n", "")
    assert json.loads((tmp_path / "some.json").read_text()) == [1]
