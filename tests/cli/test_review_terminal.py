"""`conformance review` in a real terminal, by single keys."""

from __future__ import annotations

import re
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from conformance.review.decisions import REVIEW
from tests.terminals import Terminal

from .reviewed import TOPIC, changed_project, reviewed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.projects import Project

    Open = Callable[..., Terminal]

__all__ = ["changed_project", "reviewed"]
pytestmark = [
    pytest.mark.cell,
    pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-ttys"),
]
COLOUR = re.compile(rb"\x1b\[(?:\d+;)*(?:3[0-8]|9[0-7])[;m]")


@pytest.fixture
def open_review(reviewed: Project) -> Iterator[Open]:
    """Return a function that opens a review in a terminal, which is closed after the test."""
    terminals: list[Terminal] = []

    def open_(*arguments: str, **how: object) -> Terminal:
        terminals.append(Terminal("review", *arguments, folder=reviewed.path, **how))  # type: ignore[arg-type] # as Terminal has them
        return terminals[-1]

    yield open_
    for terminal in terminals:
        terminal.process.close(force=True)


def read_decisions(project: Project) -> str:
    """Return the stored decisions as text, empty if there are none."""
    file = project.newest.path / REVIEW
    return file.read_text() if file.exists() else ""


def answer(terminal: Terminal, *answers: tuple[str, str]) -> None:
    """Answer questions, each once it is asked."""
    for question, text in answers:
        terminal.wait_for(question)
        terminal.press(f"{text}\r")


def test_review_by_keys_from_first_decision_to_written_files(
    reviewed: Project, open_review: Open
) -> None:
    """Accept, refusal, deviation, reject, undo, reopening, writing."""
    terminal = open_review()
    first = terminal.wait_for("1/5 undecided")
    assert "fact" not in first.splitlines()[0]
    order = {name: number for number, name in enumerate(_order(reviewed), 1)}
    _go(terminal, order["wrong"])
    terminal.press("a")
    terminal.wait_for("no accept: it deviates from its reference")
    terminal.press("d")
    answer(
        terminal, ("releases it is for", ""), ("platform", ""), ("pattern", "-"),
        ("reason:", "computes 3"), ("issue", "jax-ml/jax#2"),
    )  # fmt: skip
    terminal.wait_for("deviation: out 1 of 2")
    _go(terminal, order["value"])
    terminal.press("a")
    terminal.wait_for("accept: out 1 of 2")
    terminal.press("u")
    terminal.wait_for("taken back")
    _go(terminal, order["value"])
    terminal.wait_for("value", "undecided")
    terminal.press("a")
    _go(terminal, order["breaks"])
    terminal.press("r")
    answer(terminal, ("why is it rejected", "a bug of ours"))
    terminal.wait_for("reject: raised")
    terminal.press("q")
    assert terminal.wait_for_exit() == 1
    assert "3 decisions are kept in" in terminal.text
    again = open_review()
    again.wait_for("undecided")
    _go(again, order["breaks"])
    again.wait_for("a bug of ours")
    again.press("w")
    assert "goldens: 0 added, 2 changed" in again.wait_for("write this?")
    again.press("n")
    again.wait_for("nothing is written")
    assert "computes 3" not in (reviewed.path / TOPIC).read_text()
    again.press("w")
    again.wait_for("write this?")
    again.press("y")
    again.wait_for("written: goldens: 0 added, 2 changed", "/3 ")
    again.press("q")
    assert again.wait_for_exit() == 1
    assert 'reason="computes 3"' in (reviewed.path / TOPIC).read_text()


def _order(project: Project) -> list[str]:
    found = project.run("review", "--json", "-").json["groups"]
    return [group["cases"][0].partition("/")[2].partition("[")[0] for group in found]


def _go(terminal: Terminal, number: int) -> None:
    """Go to a group by its number."""
    for _ in range(5):
        terminal.press("p")
    terminal.wait_for("1/5")
    for step in range(2, number + 1):
        terminal.press("n")
        terminal.wait_for(f"{step}/5")


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    ("size", "env"),
    [
        ((60, 15), {"LINES": "24", "COLUMNS": "80"}),
        ((80, 24), {"NO_COLOR": "1"}),
        ((60, 20), {"PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii", "LC_ALL": "POSIX"}),
        ((20, 8), {}),
    ],
)
def test_review_works_in_limited_terminals(
    open_review: Open, size: tuple[int, int], env: dict[str, str]
) -> None:
    """Narrow, low, without colours, without Unicode."""
    terminal = open_review(size=size, env=env)
    terminal.wait_for("1/5")
    terminal.press("?")
    terminal.wait_for("keys")
    terminal.press("x")
    for number in range(2, 6):
        terminal.press("n")
        terminal.wait_for(f"{number}/5")
        terminal.press("   ")
    terminal.press("q")
    assert terminal.wait_for_exit() == 1
    has_colours = "NO_COLOR" not in env and "LC_ALL" not in env
    assert bool(COLOUR.search(terminal.raw)) is has_colours


@pytest.mark.long
def test_dumb_terminal_gets_no_escape_codes(open_review: Open) -> None:
    """It is written line by line."""
    terminal = open_review(env={"TERM": "dumb"})
    terminal.wait_for("1/5")
    terminal.press("q")
    assert terminal.wait_for_exit() == 1
    assert b"\x1b" not in terminal.raw


def test_escape_codes_in_messages_are_shown_not_executed(
    reviewed: Project, open_review: Open
) -> None:
    """Such as the code that clears the screen."""
    terminal = open_review("fam/breaks")
    text = terminal.wait_for("1/1")
    assert "␛[2J bad shape of" in text
    terminal.press("q")
    terminal.wait_for_exit()
    assert b"\x1b[2J" not in terminal.raw


def test_screen_is_redrawn_after_a_resize(open_review: Open) -> None:
    """At once, in any state."""
    terminal = open_review(size=(100, 30))
    terminal.wait_for("1/5", "u undo")
    terminal.resize(60, 18)
    terminal.wait_for("spc n p a r d s u w ? q")
    terminal.resize(120, 40)
    assert "u undo" in terminal.wait_for("space page  n/p group")


def test_keys_typed_ahead_are_all_processed(reviewed: Project, open_review: Open) -> None:
    """Arrows, letters, and the text of an answer."""
    terminal = open_review()
    terminal.press("\x1b[C\x1b[Cn\x1bOD")
    terminal.wait_for("3/5")
    terminal.press("rtyped ahead\n")
    terminal.wait_for("reject: ")
    assert "typed ahead" in read_decisions(reviewed)


ENDS = {"hangup": signal.SIGHUP, "terminate": signal.SIGTERM}


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("how", ["\x03", "\x04", *ENDS])
def test_decisions_survive_interrupt_and_hangup(
    reviewed: Project, open_review: Open, how: str
) -> None:
    """Ctrl-C, Ctrl-D and signals; the screen is restored."""
    terminal = open_review("fam/value", "fam/breaks")
    terminal.wait_for("1/2")
    terminal.press("a")
    terminal.wait_for("2/2")
    if how in ENDS:
        terminal.process.kill(ENDS[how])
    else:
        terminal.press(how)
    assert terminal.wait_for_exit() == (1 if how == "\x04" else 130)
    assert '"choice": "accept"' in read_decisions(reviewed)
    assert b"\x1b[?1049l" in terminal.raw


def test_closed_terminal_ends_the_review(reviewed: Project, open_review: Open) -> None:
    """The process does not survive its terminal."""
    terminal = open_review("fam/value", "fam/breaks")
    terminal.wait_for("1/2")
    terminal.press("a")
    terminal.wait_for("2/2")
    terminal.close()
    assert '"choice": "accept"' in read_decisions(reviewed)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("key", ["\x03", "\x04"])
def test_question_can_be_cancelled(reviewed: Project, open_review: Open, key: str) -> None:
    """The group stays undecided."""
    terminal = open_review("fam/breaks")
    terminal.wait_for("1/1")
    terminal.press("r")
    terminal.wait_for("why is it rejected")
    terminal.press(key)
    terminal.wait_for("called off", "1/1 undecided")
    terminal.press("q")
    assert terminal.wait_for_exit() == 1
    assert read_decisions(reviewed) == ""


def test_review_in_ci_stores_decisions_but_writes_nothing(
    reviewed: Project, open_review: Open
) -> None:
    """The screen says why."""
    terminal = open_review("fam/value", env={"CI": "true"})
    terminal.wait_for("1/1")
    terminal.press("aw")
    terminal.wait_for("goldens are never written in CI")
    terminal.press("q")
    assert terminal.wait_for_exit() == 0
    assert '"choice": "accept"' in read_decisions(reviewed)


@pytest.mark.long
def test_range_of_a_deviation_may_contain_the_name_jax(
    reviewed: Project, open_review: Open
) -> None:
    """An invalid range, or one that does not cover the release of the run, is refused."""
    terminal = open_review("fam/breaks")
    terminal.wait_for("1/1")
    for releases, words in (("soon", "not a specifier"), ("jax<0.5", "would still be")):
        terminal.press("d")
        answer(terminal, ("releases it is for", releases))
        answer(terminal, ("platform", ""), ("pattern", ""), ("reason:", "x"), ("issue", ""))
        terminal.wait_for(words, "1/1 undecided")
    terminal.press("d")
    answer(terminal, ("releases it is for", "jax>=0.6.1"))
    answer(terminal, ("platform", "cpu"), ("pattern", ""), ("reason:", "x"), ("issue", ""))
    terminal.wait_for("1/1 deviation")
    assert '"releases": ">=0.6.1"' in read_decisions(reviewed)
