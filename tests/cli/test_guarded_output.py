"""Output of commands contains no secrets and no characters that reorder text."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
import pytest

from conformance.cli.guarded_output import guard_output

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_output_masks_secrets_and_escapes_bidi_marks(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Colours, which are escape codes as well, remain."""
    monkeypatch.setenv("APITOKEN", "hunter22")
    before = getattr(sys, name)
    with guard_output():
        print("\x1b[1mhunter22\x1b[0m \u202egnp.exe", file=getattr(sys, name))
    print("after", file=getattr(sys, name))
    assert getattr(sys, name) is before
    assert getattr(capsys.readouterr(), name[3:]) == "\x1b[1m***\x1b[0m <U+202E>gnp.exe\nafter\n"


def test_output_of_click_is_masked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Click prints the errors of the command line."""
    monkeypatch.setenv("APITOKEN", "hunter22")
    with guard_output():
        click.echo("no hunter22", err=True)
    assert capsys.readouterr().err == "no ***\n"


def test_characters_missing_from_the_encoding_are_escaped(tmp_path: Path) -> None:
    """A log in ASCII gets the whole line."""
    with (
        (tmp_path / "log").open("w", encoding="ascii") as log,
        pytest.MonkeyPatch.context() as patched,
    ):
        patched.setattr(sys, "stdout", log)
        with guard_output():
            print("é")  # noqa: T201
    assert (tmp_path / "log").read_text() == "\\xe9\n"
