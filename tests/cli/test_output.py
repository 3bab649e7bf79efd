"""The lines and the JSON that commands write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.cli.output import Output, open_console

if TYPE_CHECKING:
    import pytest


def test_a_line_stays_one_line_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    """However long, and with its brackets and its colons."""
    line = "family/name[bold] :a: " + "word " * 100 + "end"
    open_console().print(line)
    assert capsys.readouterr().out == f"{line}\n"


def test_json_on_standard_output_is_alone_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Lines go to standard error; those of a query are left out."""
    Output(Path("-")).print("progress")
    Output(Path("-")).show([1], ["one"])
    assert capsys.readouterr() == ("[\n 1\n]\n", "progress\n")
    Output(tmp_path / "some.json").show([1], ["one"])
    assert capsys.readouterr() == ("one\n", "")
    assert json.loads((tmp_path / "some.json").read_text()) == [1]
