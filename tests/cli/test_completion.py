"""A shell completes commands, options, and families, cases, cells, matrices and suites."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from conformance.cli import cli
from conformance.cli.commands import COMMANDS, COMPLETING
from conformance.cli.completion import CompletionEntry, describe_command, restore_command
from tests.projects import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.projects import Project


CASE = """\
from conformance.kit import Observed, probe


@probe(params={"one": {"n": 1}, "two": {"n": 2}})
def seen(env, n):
    return Observed(n)
"""
LISTED = '[[tool.conformance.functions]]\nfunction = "mine:loss"\n'


pytestmark = pytest.mark.project({
    "cases/loops/topic.py": CASE, "cases/loops_nested/topic.py": CASE,
    "cases/empty/notes.txt": "", "pyproject.toml": LISTED,
    "matrix/mine.toml": "", "suites/sums/suite.toml": "",
})  # fmt: skip
"""Two families, a function and a matrix."""


def make_shell_environment(**more: str) -> Mapping[str, str]:
    """Return the environment of a shell that finds the `conformance` command under test."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), **more}


def complete_line(folder: Path, line: str, *options: str) -> list[str]:
    """Return the completions of a command line, requested as a shell requests them."""
    words = line.split(" ")
    done = subprocess.run(
        [sys.executable, *options, "-m", "conformance"], cwd=folder, text=True, check=True,
        capture_output=True, env=make_shell_environment(
            COMP_WORDS=line, COMP_CWORD=str(len(words) - 1), **{COMPLETING: "bash_complete"}
        ),
    )  # fmt: skip
    assert options or done.stderr == ""
    return [*done.stdout.splitlines(), *(done.stderr.splitlines() if options else [])]


@pytest.mark.long(keep=3)
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("conformance rep", ["report", "repro"]),
        ("conformance run --no-r", ["--no-report"]),
        ("conformance run lo", ["loops", "loops_nested"]),
        ("conformance run loops/", ["loops/seen", "loops/seen[one]", "loops/seen[two]"]),
        ("conformance repro loops_n", [
            "loops_nested", "loops_nested/seen", "loops_nested/seen[one]", "loops_nested/seen[two]",
        ]),
        ("conformance bisect mine", ["mine", "mine/loss"]),
        ("conformance run loops --matrix m", ["mine"]),
        ("conformance run --cell 0.6.2", ["0.6.2"]),
        ("conformance run --cell jax0.6.2", ["jax0.6.2-py311-cpu8"]),
        ("conformance run --cell latest@tpu:", ["latest@tpu:v5e:2x2"]),
        ("conformance upgrade 0.5.3 late", ["latest", "latest-1"]),
        ("conformance suite run su", ["sums"]),
        ("conformance history show loops/seen[o", ["loops/seen[one]"]),
        ("conformance run ./ca", ["./ca"]),
    ],
)  # fmt: skip
def test_completion_proposes_words_of_the_project(
    project: Project, line: str, expected: list[str]
) -> None:
    """The project is found from the working directory of the shell."""
    found = [text.partition(",")[2] for text in complete_line(project.path, line)]
    assert found == expected


def test_completion_imports_no_command_module(project: Project) -> None:
    """Completion runs at each press of a key, so it must start fast."""
    line = "conformance run loops/"
    first = complete_line(project.path, line)
    lines = complete_line(project.path, line, "-X", "importtime")
    imported = {
        text.rpartition("|")[2].strip() for text in lines if text.startswith("import time:")
    }
    assert [text for text in lines if "|" not in text] == first
    assert "conformance.cli.words" in imported
    assert imported.isdisjoint({"jax", "numpy", "conformance.cli.run", "conformance.engine.plan"})


def test_completion_outside_a_project(tmp_path: Path) -> None:
    """Installed data is proposed; unreadable settings are no error."""
    assert "plain,smoke" in complete_line(tmp_path, "conformance run --matrix s")
    (tmp_path / "pyproject.toml").write_text("[tool.conformance\n")
    assert complete_line(tmp_path, "conformance run sha") == ["file,sha"]
    assert "plain,run" in complete_line(tmp_path, "conformance ru")


def test_completion_works_without_a_writable_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is slower, but answers."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CONFORMANCE_CACHE", str(tmp_path / "file"))
    assert complete_line(tmp_path, "conformance list --te") == ["plain,--template"]


BASH = """\
eval "$(_CONFORMANCE_COMPLETE=bash_source conformance)"
complete -p conformance >/dev/null || exit 3
COMP_WORDS=(conformance run "loops/seen[o") COMP_CWORD=2
_conformance_completion conformance
printf '%s\\n' "${COMPREPLY[@]}"
"""
ZSH = """\
autoload -Uz compinit && compinit -u -D
eval "$(_CONFORMANCE_COMPLETE=zsh_source conformance)"
[[ ${_comps[conformance]} == _conformance_completion ]] || exit 3
words=(conformance run "loops/seen[o") CURRENT=3
compadd() { print -rl -- $completions }
_conformance_completion
"""
FISH = """\
_CONFORMANCE_COMPLETE=fish_source conformance | source
complete --do-complete 'conformance run loops/seen[o'
"""


@pytest.mark.parametrize(("shell", "script"), [("bash", BASH), ("zsh", ZSH), ("fish", FISH)])
def test_completion_in_a_real_shell(
    project: Project, shell: str, script: str, tmp_path: Path
) -> None:
    """Set up as the documentation says."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    plain = {"bash": ["--norc", "-c"], "zsh": ["-f", "-c"], "fish": ["--no-config", "-c"]}
    done = subprocess.run(
        [shell, *plain[shell], script], cwd=project.path, text=True, capture_output=True,
        check=False, env=make_shell_environment(HOME=str(tmp_path)),
    )  # fmt: skip
    assert (done.returncode, "loops/seen[one]" in done.stdout) == (0, True), done.stderr
    assert "loops/seen[two]" not in done.stdout
    documented = (ROOT / "docs" / "commands.md").read_text("utf-8")
    assert f"{COMPLETING}={shell}_source conformance" in documented


def walk_commands(found: CompletionEntry, path: str) -> Iterator[tuple[str, CompletionEntry]]:
    """Yield a command and all below it, each with its path."""
    yield path, found
    for one in found.commands:
        yield from walk_commands(one, f"{path} {one.name}")


@pytest.mark.parametrize("name", COMMANDS)
def test_cached_command_description_restores_all_options(name: str) -> None:
    """Also the arguments and subcommands."""
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    found = describe_command(command)
    again = describe_command(restore_command(found))
    for (path, one), (_, other) in zip(
        walk_commands(found, name), walk_commands(again, name), strict=True
    ):
        assert [param.options for param in one.params] == [p.options for p in other.params], path
        assert [param.kind for param in one.params] == [p.kind for p in other.params], path
