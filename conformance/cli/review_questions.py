"""Questions of the review screen: lines of text, entered below the evidence."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from conformance.report.text import flatten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult

    from conformance.app.review.dialog import TermQuestion


class Questions(ModalScreen["dict[str, str] | None"]):
    """Questions below the evidence, one line each; Enter goes on, and ends the last one.

    Args:
        questions: The questions.
    """

    BINDINGS: ClassVar = [
        Binding("enter,ctrl+j", "next", priority=True),
        Binding("escape,ctrl+c,ctrl+d", "dismiss(None)", priority=True),
    ]

    def __init__(self, questions: Sequence[TermQuestion]) -> None:
        super().__init__()
        self._questions = questions

    def compose(self) -> ComposeResult:
        """Yield the questions."""
        with VerticalScroll():
            for field, text, default in self._questions:
                yield Static(Text(flatten(f"{text}{f' [{default}]' * bool(default)}:")))
                yield Input(id=field, select_on_focus=False)

    def on_mount(self) -> None:
        """Begin with the first question."""
        self.set_focus(self.query(Input).first())

    async def action_next(self) -> None:
        """Go to the next question, or return the answers."""
        inputs = list(self.query(Input))
        if isinstance(current := self.focused, Input):
            # Pasted keys are queued: the input must take those before Enter before the focus moves.
            done = asyncio.Event()
            current.call_later(done.set)
            await done.wait()
            if current is not inputs[-1]:
                self.set_focus(inputs[inputs.index(current) + 1])
                return
        # An empty answer means the default, which is shown in brackets.
        answers = zip(self._questions, inputs, strict=True)
        self.dismiss({one.field: found.value.strip() or one.default for one, found in answers})
