"""Finding interpreters: order, dead shims, and the words when there is none."""

from __future__ import annotations

import sys
import venv
from pathlib import Path

import pytest

from conformance.cells import interpreters
from conformance.cells.inspection import inspect_interpreter, inspect_path_environment
from conformance.cells.interpreters import MissingInterpreterError, find_interpreter
from conformance.errors import InfrastructureError, UsageError

from .builders import HERE, make_python


def answer(version: str, base: Path, **more: object) -> str:
    """Return a shell script that answers as an interpreter would."""
    implementation = more.get("implementation", "cpython")
    threads = "true" if more.get("free_threaded") else "false"
    return (
        f'echo \'{{"version": "{version}", "implementation": "{implementation}", '
        f'"base": "{base}", "free_threaded": {threads}}}\''
    )


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with nothing but what the test puts into pyenv/ and bin/."""
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("CONFORMANCE_PYTHON_DOWNLOADS", raising=False)
    monkeypatch.setattr(interpreters, "_uv_managed", lambda python: iter(()))
    return tmp_path


def test_the_running_interpreter_comes_first() -> None:
    """The base of the running interpreter, not the environment it may run in."""
    found = find_interpreter(HERE)
    assert found == Path(getattr(sys, "_base_executable", sys.executable))


def test_the_base_of_an_environment_is_found(tmp_path: Path) -> None:
    """Asked through a virtual environment, an interpreter names the one it is made from."""
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    found = inspect_interpreter(tmp_path / "env" / "bin" / "python")
    assert not Path(found.base).is_relative_to(tmp_path)


def test_pyenv_gives_its_newest_patch(world: Path) -> None:
    """Of 3.9.2 and 3.9.10 the latter; 3.9-dev and pypy are not looked at."""
    for name in ("3.9.2", "3.9.10", "pypy3.9-7.3", "3.9-dev"):
        python = world / "pyenv" / "versions" / name / "bin" / "python"
        make_python(python, answer(name, python))
    assert find_interpreter("3.9") == world / "pyenv/versions/3.9.10/bin/python"


def test_a_dead_shim_is_passed_over(world: Path) -> None:
    """What does not run is not trusted; the next candidate is."""
    make_python(world / "pyenv/versions/3.9.1/bin/python", "echo not installed >&2; exit 127")
    alive = make_python(world / "bin" / "python3.9", answer("3.9.4", world / "base"))
    assert alive.exists()
    assert find_interpreter("3.9") == world / "base"


def test_the_message_says_what_was_tried_and_why_it_does_not_do(world: Path) -> None:
    """Every candidate with its reason, and what to do."""
    versions = world / "pyenv" / "versions"
    make_python(versions / "3.9.1/bin/python", "echo pyenv: python: not found >&2; exit 127")
    make_python(versions / "3.9.2/bin/python", answer("3.8.5", world))
    make_python(versions / "3.9.3/bin/python", answer("3.9.3", world, implementation="pypy"))
    make_python(versions / "3.9.4/bin/python", answer("3.9.4", world, free_threaded=True))
    make_python(versions / "3.9.5/bin/python", "echo hello")
    with pytest.raises(MissingInterpreterError) as caught:
        find_interpreter("3.9")
    message = str(caught.value)
    assert caught.value.python == "3.9"
    for part in (
        "python 3.9: no interpreter runs here",
        "exit status 127: pyenv: python: not found",
        "is 3.8.5",
        "is pypy, expected a plain CPython",
        "is free-threaded, expected a plain CPython",
        "not a Python interpreter",
        "CONFORMANCE_PYTHON_DOWNLOADS=1",
    ):
        assert part in message


def test_nothing_at_all_is_said_too(world: Path) -> None:
    """Without any candidate the message says so."""
    with pytest.raises(MissingInterpreterError, match="no candidate found"):
        find_interpreter("3.9")


def test_a_download_happens_only_when_allowed(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the switch set uv is asked to install, and what it installed is examined."""
    python = make_python(world / "uv" / "python3.9", answer("3.9.9", world / "uv" / "python3.9"))
    asked: list[list[str]] = []

    def run(arguments: list[str], *, cwd: Path) -> str:
        asked.append(arguments)
        monkeypatch.setattr(interpreters, "_uv_managed", lambda _: iter([python]))
        return ""

    monkeypatch.setattr(interpreters, "run_uv", run)
    monkeypatch.setenv("CONFORMANCE_PYTHON_DOWNLOADS", "1")
    assert find_interpreter("3.9") == python
    assert asked == [["python", "install", "3.9"]]


def test_an_interpreter_that_hangs_is_given_up(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A candidate has a few seconds to answer."""
    monkeypatch.setattr("conformance.cells.inspection.TIMEOUT", 0.05)
    hung = make_python(world / "bin" / "python3.9", "exec /bin/sleep 5")
    with pytest.raises(InfrastructureError, match="no answer within"):
        inspect_interpreter(hung)


def test_an_environment_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    """The path is named; a name that is too long for a file is no traceback."""
    for name in ("nowhere", "n" * 5000, "null\0byte"):
        with pytest.raises(UsageError, match="no such file, expected the python of an environ"):
            inspect_path_environment(tmp_path / name)
