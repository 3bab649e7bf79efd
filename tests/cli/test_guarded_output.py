"""What commands print: no secret, and no mark that reorders text."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
import pytest

from conformance.cli.guarded_output import guard_output

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_output_is_masked_and_escaped(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Colours stay: they are escape codes, too."""
    monkeypatch.setenv("APITOKEN", "hunter22")
    before = getattr(sys, name)
    with guard_output():
        print("\x1b[1mhunter22\x1b[0m \u202egnp.exe", file=getattr(sys, name))
    print("after", file=getattr(sys, name))
    assert getattr(sys, name) is before
    assert getattr(capsys.readouterr(), name[3:]) == "\x1b[1m***\x1b[0m <U+202E>gnp.exe\nafter\n"


def test_click_prints_through_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Errors of the command line are printed by click."""
    monkeypatch.setenv("APITOKEN", "hunter22")
    with guard_output():
        click.echo("no hunter22", err=True)
    assert capsys.readouterr().err == "no ***\n"


def test_a_character_that_the_stream_lacks_is_escaped(tmp_path: Path) -> None:
    """A log in ASCII still has the line."""
    with (
        (tmp_path / "log").open("w", encoding="ascii") as log,
        pytest.MonkeyPatch.context() as patched,
    ):
        patched.setattr(sys, "stdout", log)
        with guard_output():
            print("é")  # noqa: T201
    assert (tmp_path / "log").read_text() == "\\xe9\n"
