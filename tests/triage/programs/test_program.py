"""What a command line names as target."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conformance.errors import UsageError
from conformance.triage.programs.program import ProgramKind, ProgramTarget, find_program

PYTHON, RUNNER, NOTE = Path("/env/bin/python"), Path("/worker/script.py"), Path("/tmp/note")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a script in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "report.py").write_text("print(1)")
    (tmp_path / "my report.py").write_text("print(1)")
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("report.py", ProgramKind.SCRIPT),
        ("report.py::test_loss", ProgramKind.TEST),
        ("python report.py --steps 2", ProgramKind.COMMAND),
        ("python report.py", ProgramKind.COMMAND),
        ("my report.py", ProgramKind.SCRIPT),
    ],
)
def test_the_kind_of_a_program_follows_from_its_text(text: str, kind: ProgramKind) -> None:
    """By what it looks like."""
    assert find_program(text) == ProgramTarget(kind=kind, text=text)


@pytest.mark.parametrize("text", ["loops/adam", "loops/adam[2]", "loops"])
def test_other_texts_may_be_cases(text: str) -> None:
    """Who has the cases knows."""
    assert find_program(text) is None


@pytest.mark.usefixtures("folder")
def test_a_single_word_is_a_command_only_on_request() -> None:
    """Only where it is said to be one."""
    assert find_program("report.py", command=True) == ProgramTarget(
        kind=ProgramKind.COMMAND, text="report.py"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gone.py", "gone.py: no such file, expected a Python script or test"),
        ("gone.py::test_loss", "gone.py: no such file, expected a Python script or test"),
        ("python 'open", "python 'open: no command line: no closing quotation"),
    ],
)
def test_a_missing_file_is_an_error(text: str, said: str) -> None:
    """Before any trial."""
    with pytest.raises(UsageError) as error:
        find_program(text)
    assert str(error.value) == said


def test_the_hash_is_of_the_content(folder: Path) -> None:
    """With other options, or edited, it is another target: what the log knows does not count."""
    target = ProgramTarget(kind=ProgramKind.SCRIPT, text="report.py")
    options: dict[str, Any] = {"timeout": 60.0, "wanted": ("einops",)}
    before = target.hash(**options)
    assert target.hash(**options | {"timeout": 3.0}) != before
    assert target.hash(**options | {"wanted": ()}) != before
    (folder / "report.py").write_text("print(2)")
    assert target.hash(**options) != before
    assert ProgramTarget(kind=ProgramKind.COMMAND, text="report.py").hash(**options) != target.hash(
        **options
    )


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (ProgramKind.SCRIPT, ["/env/bin/python", "/worker/script.py", "/tmp/note", "a.py"]),
        (ProgramKind.COMMAND, ["/bin/sh", "-c", "a.py"]),
    ],
)
def test_a_script_is_run_by_the_interpreter_of_the_cell(
    kind: ProgramKind, words: list[str]
) -> None:
    """By the environment's own interpreter."""
    assert ProgramTarget(kind=kind, text="a.py").make_command(PYTHON, RUNNER, NOTE) == words


def test_a_test_is_run_by_pytest_with_a_report() -> None:
    """With a report of what failed."""
    words = ProgramTarget(kind=ProgramKind.TEST, text="a.py::b").make_command(PYTHON, RUNNER, NOTE)
    assert words[:3] == ["/env/bin/python", "-m", "pytest"]
    assert "--junitxml=/tmp/note" in words
    assert words[-1] == "a.py::b"
