"""FileCheck claims about the text of an IR, in its canonical form."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

from filecheck.error import CheckError, ErrorOnMatch
from filecheck.finput import FInput, InputRange
from filecheck.matcher import Matcher

from conformance.corpus.claims import parse_checks, render_check

if TYPE_CHECKING:
    from filecheck.ops import CheckOp

# The package reports a failure on stderr only; its run method returns 1.
_ERROR = re.compile(r"error: (.*)")


def run_filecheck(text: str, pattern: str) -> str:
    """Match a text against a FileCheck pattern.

    Args:
        text: The text, e.g. an IR in the canonical form.
        pattern: A check a line, e.g. `CHECK: all-reduce`; `corpus.claims.find_claim_problem` finds
            nothing wrong with it.

    Returns:
        Empty if every check holds; else one sentence with the failing check and the searched lines.
    """
    checks = parse_checks(pattern)
    # The package searches the end of the line after the last match, so there must be a line end.
    matcher = _Matcher(checks.opts, _Text("text", f"{text}\n"), checks)
    matcher.stderr = io.StringIO()
    if matcher.run() == 0:
        return ""
    error = _ERROR.search(matcher.stderr.getvalue())
    return matcher.explain(pattern, error[1] if error else "nothing to match with")


class _Text(FInput):
    """The text, with the position up to which it is matched."""

    def advance_to_last_hole(self) -> None:
        """Continue after the matches of `CHECK-DAG`; the package's own method prints to stdout."""
        rest = self.is_discontigous()
        if rest is not None:
            behind = rest.remainder_to_normal_range()
            self.move_to(behind.start)
            self.range = behind

    @property
    def last(self) -> int:
        """Position of the last character that is no white space."""
        # The line end that run_filecheck appends is no line of the user's text.
        return len(self.content.rstrip())

    def number(self, position: int) -> int:
        """Return the number of the line of a position, from 1."""
        return self.content.count("\n", 0, position) + 1

    def line(self, position: int) -> str:
        """Return the line of a position."""
        start = self.content.rfind("\n", 0, position) + 1
        return self.content[start : self.content.find("\n", position)].strip()


class _Matcher(Matcher):
    """Remembers the check that failed, and where."""

    file: _Text
    _failed: CheckOp | None = None
    _found: re.Match[str] | None = None
    _latest: tuple[CheckOp, int] | None = None

    def explain(self, pattern: str, message: str) -> str:
        """Return the failure in one sentence.

        Args:
            pattern: The pattern.
            message: Message of the package.
        """
        check, text = self._failed, self.file
        if check is None:
            return message
        name = f"`{render_check(check, pattern)}`"
        if self._found is not None:
            at = self._found.start()
            return f"{name} finds line {text.number(at)}: {text.line(at)}"
        # Other messages, e.g. of an undefined variable, explain more than the searched lines
        # would.
        if not message.startswith(("Couldn't match", f"{check.check_name}: ")):
            return f"{name}: {message[:1].lower()}{message[1:]}"
        return f"{name} {self._explain_unmatched(check)}"

    def _explain_unmatched(self, check: CheckOp) -> str:
        """Return the lines in which a positive check found no match."""
        text = self.file
        start = text.range.start
        first, last = text.number(start), text.number(min(text.range.end, text.last))
        match check.name:
            case "NEXT" | "EMPTY" if first == last:
                return f"finds no line after the last, {last}: {text.line(start)}"
            case "NEXT" | "EMPTY":
                start += text.content.startswith("\n", start)
                return f"does not match line {text.number(start)}: {text.line(start)}"
            case "SAME":
                return f"finds nothing in the rest of line {first}: {text.line(start)}"
            case _:
                return f"finds nothing in lines {first} to {max(first, last)}"

    def check_not(self, op: CheckOp, search_range: InputRange) -> None:
        """Check that a pattern is absent up to the next match, which is not searched itself."""
        # LLVM's FileCheck excludes the next match from a CHECK-NOT; the package includes it.
        start, end = search_range.start, search_range.end
        if self._latest is not None and start <= self._latest[1] < end:
            end = self._latest[1]
        try:
            super().check_not(op, InputRange(start, end))
        except ErrorOnMatch as error:
            self._failed, self._found = error.op, error.match
            raise

    def capture_results(self, match: re.Match[str], capture: dict[str, Any], op: CheckOp) -> None:
        """Store the values of variables; an empty value is a failure, not a warning on stderr."""
        if self._latest is None or self._latest[0] is not op:
            self._latest = (op, match.start())
        empty = [name for name, (group, _) in capture.items() if not match.group(group)]
        if empty:
            raise CheckError(f"nothing captured for variable {', '.join(empty)}", op)
        super().capture_results(match, capture, op)

    def find_prefix_match_for(self, op: CheckOp) -> None:
        """Remember the check; the near match that the package would look for is not shown."""
        self._failed = op
