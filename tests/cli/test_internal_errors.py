"""Exit status 70 is for bugs of the harness; no output of a case causes it."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from conformance.cli import main
from conformance.cli.commands import COMMANDS
from conformance.model.outcome import ExitCode
from tests.projects import ROOT, case

if TYPE_CHECKING:
    from .conftest import MakeProject


@pytest.mark.parametrize("error", [ZeroDivisionError("odd"), RecursionError(), MemoryError()])
def test_internal_error_exits_70(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    """With the traceback, and a line that asks to report it."""

    def broken(_: str) -> object:
        raise error

    monkeypatch.setattr(importlib, "import_module", broken)
    assert int(main(["list"])) == 70
    output = capsys.readouterr().err
    assert "Traceback (most recent call last):" in output
    assert type(error).__name__ in output
    assert output.splitlines()[-1].startswith("conformance: internal error; ")


def test_ctrl_c_exits_130(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not with the status of an internal error."""

    def interrupt(_: str) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib, "import_module", interrupt)
    assert main(["list"]) == ExitCode.INTERRUPTED


def test_closed_pipe_prints_no_traceback() -> None:
    """As in `conformance list | head -1`."""
    command = f"set -o pipefail; {sys.executable} -m conformance list | head -1"
    done = subprocess.run(
        ["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.returncode in {0, 1}


def test_characters_missing_from_stdout_encoding_are_escaped() -> None:
    """In ASCII and in Latin-1."""
    done = subprocess.run(
        [sys.executable, "-m", "conformance", "doctor", "--help"], cwd=ROOT,
        env={**os.environ, "PYTHONIOENCODING": "ascii"}, capture_output=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    script = (
        "import click, sys\nfrom conformance import cli\n"
        "from conformance.cli.commands import COMMANDS, CommandEntry\n"
        "@cli.cli.command('odd')\ndef odd(): click.echo('caf\\xe9 \\udcff')\n"
        "COMMANDS['odd'] = CommandEntry('odd', 'Odd.')\nimport types\n"
        "sys.modules['odd'] = types.SimpleNamespace(command=odd)\nsys.exit(cli.main(['odd']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, check=False,
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, b"caf\xe9 \\udcff\n"), done.stderr


@pytest.mark.cell
def test_error_message_with_lone_surrogate_is_escaped_and_resumable(
    new_project: MakeProject,
) -> None:
    """In the terminal, in JSON and in the records, which `--resume` reads again."""
    odd = case('raise RuntimeError("no such file: \\udcff.txt")', name="odd")
    calm = case("return Observed(np.int32(3), reference=np.int32(3))", name="calm")
    project = new_project({"cases/family/odd.py": odd, "cases/family/calm.py": calm})
    for more in ([], ["--resume"]):
        ended = project.run("run", "--json", "out.json", "--run", "one", *more)
        assert ended.code == 1, ended.err
        assert "Traceback (most" not in ended.err
        assert "no such file: \\udcff.txt" in ended.out


@pytest.mark.parametrize("name", COMMANDS)
def test_help_that_lists_status_130_lists_70(name: str) -> None:
    """A command that may be interrupted may also fail by a bug."""
    command = importlib.import_module(COMMANDS[name].module).command
    text = command.help or ""
    assert ("130 interrupted" in text) == ("70 internal error" in text), text
