"""The review screen: keys, questions and what is shown, in a Textual app without a terminal."""

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
    """A review of four groups, none of which is decided."""
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
    """Play a script in the app, and return the app at its end."""
    app = ReviewApp(review, check)

    async def run() -> None:
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await script(pilot, app)

    asyncio.run(run())
    return app


def text(app: ReviewApp, name: str) -> str:
    """Return the text of a part of the screen."""
    return str(app.screen_stack[0].query_one(f"#{name}", Static).content)


async def shown(app: ReviewApp, message: str) -> None:
    """Wait until a message is shown."""
    for _ in range(500):
        if message in text(app, "message"):
            return
        await asyncio.sleep(0.01)
    pytest.fail(f"{message} is not shown, but {text(app, 'message')}")


def choices(review: MadeUpReview) -> list[Choice]:
    """Return the decisions that are kept."""
    return [one.choice for one in MadeUpReview(review.directory.path).log.decisions]


def test_a_group_is_shown_with_its_evidence(review: MadeUpReview) -> None:
    """Number, state, id, title, message and keys; control codes of a case are visible."""

    async def script(pilot: Pilot[ExitCode], app: ReviewApp) -> None:
        group = review.groups[BREAKS]
        assert text(app, "place").startswith(f" 1/4 undecided  {group.id}  1 cell / 1 case ")
        assert text(app, "title") == group.title
        assert text(app, "keys") == "spc n p a r d s u w ? q"
        assert "␛[2J bad shape" in "\n".join(line.plain for line in app.dialog.lines)
        await pilot.resize_terminal(100, 30)
        await pilot.pause()
        assert text(app, "keys").startswith("space page  n/p group  a accept")

    play(review, script)


@pytest.mark.parametrize(("forth", "back"), [("n", "p"), ("right", "left"), ("tab", "left")])
def test_going_from_group_to_group(review: MadeUpReview, forth: str, back: str) -> None:
    """By letters and arrows; at either end a message says so."""

    async def script(pilot: Pilot[ExitCode], app: ReviewApp) -> None:
        await pilot.press(back)
        assert text(app, "message") == "this is the first group"
        await pilot.press(forth, forth, forth)
        assert (text(app, "place")[:5], text(app, "message")) == (" 4/4 ", "")
        await pilot.press(forth)
        assert text(app, "message") == "this is the last group"
        await pilot.press(back, "x")
        assert (text(app, "place")[:5], text(app, "message")[:11]) == (" 3/4 ", "no such key")

    play(review, script)


def test_paging(review: MadeUpReview) -> None:
    """By pages and lines; after the last page comes the first; the rest is counted."""

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


def test_another_group_is_shown_from_its_first_line(review: MadeUpReview) -> None:
    """The page of the group before does not stay."""

    async def script(pilot: Pilot[ExitCode], app: ReviewApp) -> None:
        await pilot.press("n", "space", "p", "n")
        await pilot.pause()
        assert app.query_one(EvidencePane).scroll_offset.y == 0

    play(review, script, size=(60, 12))


def test_decisions_are_kept_and_undone(review: MadeUpReview) -> None:
    """Accept, reject, deviation, skip, undo; another review takes them up again."""

    async def script(pilot: Pilot[ExitCode], app: ReviewApp) -> None:
        await pilot.press("a")
        assert text(app, "message").startswith("accept: ")
        await pilot.press("r", *"ours", "enter")
        assert text(app, "message").startswith("reject: ")
        await pilot.press("s", "a")
        assert "no accept: it deviates from its reference" in text(app, "message")
        await pilot.press("d")
        assert isinstance(app.screen, Questions)
        labels = [str(one.content) for one in app.screen.query(Static) if one.id is None]
        assert labels[0] == "releases it is for, - for all [>=0.6,<=0.6.0]:"
        await pilot.press("enter", "enter", "minus", "enter", *"why", "enter", "enter")
        assert text(app, "message").startswith("deviation: ")
        assert choices(review) == [Choice.ACCEPT, Choice.REJECT, Choice.DEVIATION]
        decision = review.log.decisions[-1]
        assert (decision.releases, decision.match, decision.reason) == (None, "", "why")
        await pilot.press("a", "u", "u")
        assert text(app, "message") == "taken back"
        assert choices(review) == [Choice.ACCEPT, Choice.REJECT]
        await pilot.press("q")

    assert play(review, script).return_value is None
    again = MadeUpReview(review.directory.path)

    async def resumed(pilot: Pilot[ExitCode], app: ReviewApp) -> None:
        assert text(app, "place").startswith(" 3/4 undecided")
        await pilot.press("p", "p")
        assert text(app, "place").startswith(" 1/4 accept")
        await pilot.press("u")
        assert text(app, "message") == "taken back: what was decided on this group"
        await pilot.press("u")
        assert text(app, "message") == "nothing to undo"

    play(again, resumed)
    assert choices(review) == [Choice.REJECT]


@pytest.mark.parametrize("key", ["escape", "ctrl+c", "ctrl+d"])
def test_a_question_can_be_called_off(review: MadeUpReview, key: str) -> None:
    """The review goes on, undecided."""

    async def script(pilot: Pilot[ExitCode], app: ReviewApp) -> None:
        await pilot.press("r", "x", key)
        await pilot.pause()
        assert (text(app, "message"), app.screen.is_modal) == ("called off", False)
        await pilot.press("n", "d")
        assert text(app, "message").startswith("no deviation: it conforms")

    play(review, script)
    assert choices(review) == []


def test_help(review: MadeUpReview) -> None:
    """Each key is explained; any other key goes back, q quits."""

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


def test_what_would_be_written_is_confirmed(
    review: MadeUpReview, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paging keys page, `y` writes, any other key does not."""
    written: list[int] = []
    monkeypatch.setattr(review, "write", lambda _: written.append(1))

    async def script(pilot: Pilot[ExitCode], app: ReviewApp) -> None:
        await pilot.press("w")
        assert text(app, "message") == "nothing to write: no group is accepted or declared"
        await pilot.press("a", "w", "space")
        assert isinstance(app.screen, Lines)
        keys = app.screen.query(Static).last()
        assert str(keys.content) == "write this?  y yes  space page  any other key: no"
        await pilot.press("z")
        await pilot.pause()
        assert (text(app, "message"), written) == ("nothing is written", [])
        await pilot.press("w", "y", "n")
        await pilot.pause()
        assert text(app, "place").startswith(" 3/4 ")
        assert written == [1]

    play(review, script)


def test_what_may_not_be_written_is_reported(review: MadeUpReview) -> None:
    """As in CI; the decisions stay."""

    def check(_: Outcomes) -> None:
        raise UsageError("goldens are never written in CI")

    async def script(pilot: Pilot[ExitCode], app: ReviewApp) -> None:
        await pilot.press("a", "w")
        assert text(app, "message") == "goldens are never written in CI"

    play(review, script, check=check)
    assert choices(review) == [Choice.ACCEPT]


def test_a_lock_that_another_process_holds_is_reported(review: MadeUpReview) -> None:
    """The screen says what it waits for, and goes on afterwards."""
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
        await shown(app, "waiting for another process")
        release.set()
        await pressing
        await shown(app, "accept: ")

    play(review, script)
    holder.join()


def test_a_disk_that_refuses_ends_it(review: MadeUpReview, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is the command's."""

    def refuse(*_: object) -> None:
        raise InfrastructureError("disk full")

    monkeypatch.setattr(review, "save", refuse)

    async def script(pilot: Pilot[ExitCode], app: ReviewApp) -> None:
        await pilot.press("a")
        await pilot.pause()

    assert str(play(review, script).failure) == "disk full"


def test_ctrl_c_interrupts(review: MadeUpReview) -> None:
    """Also while help is shown."""

    async def script(pilot: Pilot[ExitCode], app: ReviewApp) -> None:
        await pilot.press("h", "ctrl+c")
        await pilot.pause()

    assert play(review, script).return_value is ExitCode.INTERRUPTED


@pytest.mark.parametrize("size", [(20, 8), (40, 12), (200, 60)])
def test_any_size_of_terminal(review: MadeUpReview, size: tuple[int, int]) -> None:
    """All keys do what they do; every question can be reached."""

    async def script(pilot: Pilot[ExitCode], app: ReviewApp) -> None:
        await pilot.press("n", "space", "p", "d", "enter", "enter", "enter", *"why", "enter")
        focused = app.screen.focused
        assert isinstance(focused, Input)
        assert app.screen.region.contains_region(focused.region)
        await pilot.press("enter")
        await pilot.pause()
        assert choices(review) == [Choice.DEVIATION]

    play(review, script, size=size)
