"""The review screen: keys, questions and output, in a Textual app without a terminal."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest
from textual.widgets import Input, Static

from conformance.cli.review_questions import Questions
from conformance.cli.review_screen import ReviewApp
from conformance.cli.review_widgets import EvidencePane, Lines
from conformance.errors import InfrastructureError, UsageError
from conformance.locking import lock_file
from conformance.model.outcome import ExitCode
from conformance.review.decisions import REVIEW, Choice
from tests.review.made_up import MadeUpReview

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from textual.pilot import Pilot

    from conformance.review.outcomes import Outcomes

    Play = Callable[[Pilot[ExitCode], ReviewApp], Awaitable[None]]

TOPIC = """\
from conformance.kit import program


@program()
def breaks(env): ...


@program()
def wrong(env): ...
"""
BREAKS, LONG, VALUE, WRONG = range(4)
"""Groups in their order."""


@pytest.fixture
def review(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MadeUpReview:
    """A review of four undecided groups."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CI", raising=False)
    (tmp_path / "cases" / "fam").mkdir(parents=True)
    (tmp_path / "cases" / "fam" / "topic.py").write_text(TOPIC)
    return MadeUpReview(tmp_path)


def play(
    review: MadeUpReview,
    script: Play,
    size: tuple[int, int] = (80, 24),
    check: Callable[[Outcomes], None] = lambda _: None,
) -> ReviewApp:
    """Run a script of keys in the app, and return the app afterwards."""
    app = ReviewApp(review, check)

    async def run() -> None:
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await script(pilot, app)

    asyncio.run(run())
    return app


def read_widget(app: ReviewApp, name: str) -> str:
    """Return the text of a part of the screen."""
    return str(app.screen_stack[0].query_one(f"#{name}", Static).content)


async def wait_for_message(app: ReviewApp, message: str) -> None:
    """Wait until a message is on the screen."""
    for _ in range(500):
        if message in read_widget(app, "message"):
            return
        await asyncio.sleep(0.01)
    pytest.fail(f"{message} is not shown, but {read_widget(app, 'message')}")


def read_stored_choices(review: MadeUpReview) -> list[Choice]:
    """Return the stored decisions."""
    return [one.choice for one in MadeUpReview(review.directory.path).log.decisions]


def test_screen_shows_a_group_with_its_evidence(review: MadeUpReview) -> None:
    """Number, state, id, title, message and keys; control codes of a case are visible."""

    async def script(pilot: Pilot[ExitCode], app: ReviewApp) -> None:
        group = review.groups[BREAKS]
        assert read_widget(app, "place").startswith(f" 1/4 undecided  {group.id}  1 cell / 1 case ")
        assert read_widget(app, "title") == group.title
        assert read_widget(app, "keys") == "spc n p a r d s u w ? q"
        assert "␛[2J bad shape" in "\n".join(line.plain for line in app.dialog.lines)
        await pilot.resize_terminal(100, 30)
        await pilot.pause()
        assert read_widget(app, "keys").startswith("space page  n/p group  a accept")

    play(review, script)


@pytest.mark.parametrize(("forth", "back"), [("n", "p"), ("right", "left"), ("tab", "left")])
def test_keys_move_between_groups(review: MadeUpReview, forth: str, back: str) -> None:
    """At either end a message says so."""

    async def script(pilot: Pilot[ExitCode], app: ReviewApp) -> None:
        await pilot.press(back)
        assert read_widget(app, "message") == "this is the first group"
        await pilot.press(forth, forth, forth)
        assert (read_widget(app, "place")[:5], read_widget(app, "message")) == (" 4/4 ", "")
        await pilot.press(forth)
        assert read_widget(app, "message") == "this is the last group"
        await pilot.press(back, "x")
        assert (read_widget(app, "place")[:5], read_widget(app, "message")[:11]) == (
            " 3/4 ",
            "no such key",
        )

    play(review, script)


def test_keys_scroll_the_evidence(review: MadeUpReview) -> None:
    """The first page follows the last; the lines below are counted."""

    async def script(pilot: Pilot[ExitCode], app: ReviewApp) -> None:
        await pilot.press("n")
        await pilot.pause()
        pane = app.query_one(EvidencePane)
        assert pane.max_scroll_y > pane.size.height > 0
        assert pane.border_subtitle == f"{pane.max_scroll_y} more lines (space)"
        for keys, top in (
            (["down", "j", "up", "j"], 2), (["k", "k"], 0), (["space"], pane.size.height),
            (["b"], 0), (["pagedown"] * 9 + ["up"], None),
        ):  # fmt: skip
            await pilot.press(*keys)
            await pilot.pause()
            assert top is None or pane.scroll_offset.y == top
        while pane.scroll_offset.y < pane.max_scroll_y:
            await pilot.press("pagedown")
            await pilot.pause()
        assert pane.border_subtitle == ""
        await pilot.press("space")
        await pilot.pause()
        assert pane.scroll_offset.y == 0

    play(review, script, size=(60, 12))


def test_scroll_position_is_reset_for_another_group(review: MadeUpReview) -> None:
    """Each group starts at its first line."""

    async def script(pilot: Pilot[ExitCode], app: ReviewApp) -> None:
        await pilot.press("n", "space", "p", "n")
        await pilot.pause()
        assert app.query_one(EvidencePane).scroll_offset.y == 0

    play(review, script, size=(60, 12))


def test_decisions_are_stored_and_undone(review: MadeUpReview) -> None:
    """Accept, reject, deviation, skip, undo; a second review starts with them."""

    async def script(pilot: Pilot[ExitCode], app: ReviewApp) -> None:
        await pilot.press("a")
        assert read_widget(app, "message").startswith("accept: ")
        await pilot.press("r", *"ours", "enter")
        assert read_widget(app, "message").startswith("reject: ")
        await pilot.press("s", "a")
        assert "no accept: it deviates from its reference" in read_widget(app, "message")
        await pilot.press("d")
        assert isinstance(app.screen, Questions)
        labels = [str(one.content) for one in app.screen.query(Static) if one.id is None]
        assert labels[0] == "releases it is for, - for all [>=0.6,<=0.6.0]:"
        await pilot.press("enter", "enter", "minus", "enter", *"why", "enter", "enter")
        assert read_widget(app, "message").startswith("deviation: ")
        assert read_stored_choices(review) == [Choice.ACCEPT, Choice.REJECT, Choice.DEVIATION]
        decision = review.log.decisions[-1]
        assert (decision.releases, decision.match, decision.reason) == (None, "", "why")
        await pilot.press("a", "u", "u")
        assert read_widget(app, "message") == "taken back"
        assert read_stored_choices(review) == [Choice.ACCEPT, Choice.REJECT]
        await pilot.press("q")

    assert play(review, script).return_value is None
    again = MadeUpReview(review.directory.path)

    async def resume(pilot: Pilot[ExitCode], app: ReviewApp) -> None:
        assert read_widget(app, "place").startswith(" 3/4 undecided")
        await pilot.press("p", "p")
        assert read_widget(app, "place").startswith(" 1/4 accept")
        await pilot.press("u")
        assert read_widget(app, "message") == "taken back: what was decided on this group"
        await pilot.press("u")
        assert read_widget(app, "message") == "nothing to undo"

    play(again, resume)
    assert read_stored_choices(review) == [Choice.REJECT]


@pytest.mark.parametrize("key", ["escape", "ctrl+c", "ctrl+d"])
def test_question_can_be_cancelled(review: MadeUpReview, key: str) -> None:
    """The group stays undecided."""

    async def script(pilot: Pilot[ExitCode], app: ReviewApp) -> None:
        await pilot.press("r", "x", key)
        await pilot.pause()
        assert (read_widget(app, "message"), app.screen.is_modal) == ("called off", False)
        await pilot.press("n", "d")
        assert read_widget(app, "message").startswith("no deviation: it conforms")

    play(review, script)
    assert read_stored_choices(review) == []


def test_help_closes_on_any_key(review: MadeUpReview) -> None:
    """Except `q`, which quits."""

    async def script(pilot: Pilot[ExitCode], app: ReviewApp) -> None:
        for key in ("?", "h"):
            await pilot.press("question_mark" if key == "?" else key)
            assert isinstance(app.screen, Lines)
            await pilot.press("x")
            await pilot.pause()
            assert not app.screen.is_modal
        await pilot.press("h", "q")
        await pilot.pause()

    assert play(review, script).return_value is None


def test_writing_asks_for_confirmation(
    review: MadeUpReview, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`y` writes, paging keys scroll, any other key cancels."""
    written: list[int] = []
    monkeypatch.setattr(review, "write", lambda _: written.append(1))

    async def script(pilot: Pilot[ExitCode], app: ReviewApp) -> None:
        await pilot.press("w")
        assert read_widget(app, "message") == "nothing to write: no group is accepted or declared"
        await pilot.press("a", "w", "space")
        assert isinstance(app.screen, Lines)
        keys = app.screen.query(Static).last()
        assert str(keys.content) == "write this?  y yes  space page  any other key: no"
        await pilot.press("z")
        await pilot.pause()
        assert (read_widget(app, "message"), written) == ("nothing is written", [])
        await pilot.press("w", "y", "n")
        await pilot.pause()
        assert read_widget(app, "place").startswith(" 3/4 ")
        assert written == [1]

    play(review, script)


def test_refused_writing_is_reported_and_decisions_remain(review: MadeUpReview) -> None:
    """As in CI."""

    def check(_: Outcomes) -> None:
        raise UsageError("goldens are never written in CI")

    async def script(pilot: Pilot[ExitCode], app: ReviewApp) -> None:
        await pilot.press("a", "w")
        assert read_widget(app, "message") == "goldens are never written in CI"

    play(review, script, check=check)
    assert read_stored_choices(review) == [Choice.ACCEPT]


def test_screen_reports_that_it_waits_for_a_lock(review: MadeUpReview) -> None:
    """It continues once the lock is released."""
    release = threading.Event()
    held = threading.Event()

    def hold() -> None:
        with lock_file(review.directory.path / REVIEW, print):
            held.set()
            release.wait(10)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(10)

    async def script(pilot: Pilot[ExitCode], app: ReviewApp) -> None:
        pressing = asyncio.create_task(pilot.press("a"))
        await wait_for_message(app, "waiting for another process")
        release.set()
        await pressing
        await wait_for_message(app, "accept: ")

    play(review, script)
    holder.join()


def test_failing_save_ends_the_review(
    review: MadeUpReview, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error is that of the command."""

    def refuse(*_: object) -> None:
        raise InfrastructureError("disk full")

    monkeypatch.setattr(review, "save", refuse)

    async def script(pilot: Pilot[ExitCode], app: ReviewApp) -> None:
        await pilot.press("a")
        await pilot.pause()

    assert str(play(review, script).failure) == "disk full"


def test_ctrl_c_interrupts_the_review(review: MadeUpReview) -> None:
    """Also while the help is open."""

    async def script(pilot: Pilot[ExitCode], app: ReviewApp) -> None:
        await pilot.press("h", "ctrl+c")
        await pilot.pause()

    assert play(review, script).return_value is ExitCode.INTERRUPTED


@pytest.mark.parametrize("size", [(20, 8), (40, 12), (200, 60)])
def test_questions_can_be_answered_in_any_terminal_size(
    review: MadeUpReview, size: tuple[int, int]
) -> None:
    """The focused field is always on the screen."""

    async def script(pilot: Pilot[ExitCode], app: ReviewApp) -> None:
        await pilot.press("n", "space", "p", "d", "enter", "enter", "enter", *"why", "enter")
        focused = app.screen.focused
        assert isinstance(focused, Input)
        assert app.screen.region.contains_region(focused.region)
        await pilot.press("enter")
        await pilot.pause()
        assert read_stored_choices(review) == [Choice.DEVIATION]

    play(review, script, size=size)
