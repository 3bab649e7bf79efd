"""Tracebacks: the user's frames in full, those of libraries folded, nothing in them acts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.model.traceback import RaisedException, TracebackFrame, encode_traceback
from conformance.report.tracebacks import (
    Fold,
    collect_stacks,
    render_cause_tracebacks,
    render_traceback,
)
from tests.report.raising import FRAMES, LINES, RAISED, library, own
from tests.report.runs import CELLS, Directory, sides

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.engine.runs.stored_job import StoredJob


def side(folder: Path, *frames: TracebackFrame, **more: Any) -> StoredJob:
    """Return a job that raised with some frames."""
    text = encode_traceback((RaisedException(type="E", frames=frames, **more),)).decode()
    return told(folder, {"frames": text})


def told(folder: Path, texts: dict[str, str]) -> StoredJob:
    """Return a job that raised, with some artifacts."""
    (one,) = sides(Directory(folder).job("f/a", CELLS[0], error=("E", "m"), texts=texts))
    return one


def shown(folder: Path, *frames: TracebackFrame) -> list[str]:
    """Return the frames that are shown of some, without their sources."""
    parts = collect_stacks(side(folder, *frames))[0].parts
    return [f"... {p.label}" if isinstance(p, Fold) else p.line for p in parts]


def test_a_traceback_with_own_and_library_frames(tmp_path: Path) -> None:
    """Files as seen from the project; the library's frame that raised; then the cause."""
    assert tuple(render_traceback(told(tmp_path, FRAMES))) == LINES


def test_an_error_of_a_library_alone(tmp_path: Path) -> None:
    """As at execution, when no line of the user's is running."""
    frames = [library("jax"), library("jaxlib"), library("python"), library("numpy"), library("x")]
    assert shown(tmp_path, *frames, library("jax", 5)) == [
        "... 5 frames in jax, jaxlib, the standard library and 2 more",
        "jax/_src/core.py:5 in bind",
    ]


def test_a_recursion_and_frames_that_were_left_out(tmp_path: Path) -> None:
    """Each with its number."""
    assert shown(tmp_path, own(count=201), TracebackFrame(count=40), own(9)) == [
        "cases/f/t.py:7 in step (201 times)", "... 40 frames", "cases/f/t.py:9 in step",
    ]  # fmt: skip


def test_a_long_stack_is_folded_in_its_middle(tmp_path: Path) -> None:
    """Its own frames, too: the first lines and the last are what is read."""
    found = shown(tmp_path, *(own(n) for n in range(1, 51)))
    assert len(found) == 14
    assert (found[0], found[5], found[-1]) == (
        "cases/f/t.py:1 in step", "... 37 frames", "cases/f/t.py:50 in step",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("file", "at"),
    [
        ("/home/me/project/src/mine/solver.py", "src/mine/solver.py"),
        ("mine/solver.py", "mine/solver.py"),
        ("/elsewhere/cases/f/t.py", "cases/f/t.py"),
        ("/opt/very/far/away/mine/solver.py", ".../away/mine/solver.py"),
        ("/a.py", "/a.py"),
        ("<string>", "<string>"),
    ],
)
def test_how_files_are_named(tmp_path: Path, file: str, at: str) -> None:
    """From the project, wherever it was when the job ran; of others the end of the path."""
    lines = render_traceback(side(tmp_path, own(file=file)), ["/home/me/project"])
    assert lines[1] == f"  {at}:7 in step"


def writable(text: str) -> str:
    """Return a text as a worker sends it: one that UTF-8 can hold."""
    return text.encode("utf-8", "backslashreplace").decode()


@given(
    st.text(max_size=40), st.text(max_size=40), st.text(max_size=40),
    st.lists(st.text(max_size=40), max_size=2),
)  # fmt: skip
def test_a_hostile_traceback_is_sanitized(
    tmp_path_factory: pytest.TempPathFactory, name: str, text: str, message: str, notes: list[str]
) -> None:
    """Neither a control code nor a mark that reorders, and each frame has its own lines."""
    name, text, message, *notes = (writable(one) for one in (name, text, message, *notes))
    frame = own(file=f"/{name}\u202e", function=name + "\x1b[2J", source=text + "\u202e")
    made = side(tmp_path_factory.mktemp("r"), frame, message=message, notes=tuple(notes))
    lines = render_traceback(made)
    assert not {"\u202e", "\x1b", "\n", "\r", "\x85", "\u2028"} & set("".join(lines))
    assert len(lines) == 4 + len(notes)


def test_a_run_of_an_older_release(tmp_path: Path) -> None:
    """It kept text only: its end is shown, and never a line of the harness."""
    text = (
        "Traceback (most recent call last):\n"
        '  File "/x/site-packages/conformance/worker/stages.py", line 60, in observe\n'
        "    built = build(fn, env, params)\n"
        "            ^^^^^^^^^^^^^^^^^^^^^^\n"
        '  File "/home/me/cases/f/t.py", line 3, in a\n    1 / 0\n'
        "ZeroDivisionError: division by \x1bzero\n"
    )
    assert render_traceback(told(tmp_path, {"traceback": text})) == [
        "traceback (most recent call last):",
        '    File "/home/me/cases/f/t.py", line 3, in a',
        "      1 / 0",
        "  ZeroDivisionError: division by \u241bzero",
    ]


def test_a_long_text_is_cut_at_its_beginning(tmp_path: Path) -> None:
    """What ended it stands last."""
    lines = render_traceback(told(tmp_path, {"traceback": "line\n" * 100 + "the end"}))
    assert (lines[1], lines[-1], len(lines)) == ("  ... 77 more lines ...", "  the end", 26)


def test_jobs_without_a_traceback(tmp_path: Path) -> None:
    """One that was killed; an artifact of the case's own; an error without frames; a lost blob."""
    assert render_traceback(told(tmp_path / "a", {})) == []
    assert render_traceback(told(tmp_path / "b", {"frames": "1 2 3"})) == []
    assert render_traceback(side(tmp_path / "d", message="a case builds no mesh")) == []
    lost = told(tmp_path / "c", FRAMES)
    for file in (tmp_path / "c" / "blobs").rglob("*"):
        if file.is_file():
            file.unlink()
    assert render_traceback(lost) == []


def test_of_several_processes_the_first_traceback_is_shown(tmp_path: Path) -> None:
    """Where they do not agree, each has its own."""
    other = encode_traceback((RaisedException(type="Other"),)).decode()
    made = told(tmp_path, {"frames.rank1": other, "frames.rank0": FRAMES["frames"]})
    assert tuple(render_traceback(made)) == LINES


def test_equal_tracebacks_of_a_cause_are_shown_once(tmp_path: Path) -> None:
    """That of the first job; of all of them, each with the jobs that have it."""
    made = Directory(tmp_path)
    for cell in CELLS[:2]:
        made.job("f/a", cell, **RAISED)
    made.job("f/a", CELLS[2], error=("E", "m"), texts={"traceback": "another"})
    made.job("f/b", CELLS[2], error=("E", "m"))
    report = made.report()
    assert (
        tuple(render_cause_tracebacks(report.render_traceback, report.records, every=False))
        == LINES
    )
    every = list(render_cause_tracebacks(report.render_traceback, report.records, every=True))
    assert every[0] == f"f/a on {CELLS[0]}, f/a on {CELLS[1]}"
    assert tuple(every[1 : 1 + len(LINES)]) == LINES
    assert every[1 + len(LINES)] == f"f/a on {CELLS[2]}"
    assert not any("f/b" in line for line in every)
