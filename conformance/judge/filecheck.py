"""FileCheck-style claims: what the text of an IR must show, in which order, and what it must not.

The text is the form `neutral`, which is the same over releases as long as the work is the same.
"""

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

_SAID = re.compile(r"error: (.*)")


def run_filecheck(text: str, pattern: str) -> str:
    """Match a text against a FileCheck pattern.

    Args:
        text: The text, e.g. an IR in the form `neutral`.
        pattern: A check a line, e.g. `CHECK: all-reduce`; `corpus.claims.find_claim_problem` finds
            nothing wrong with it.

    Returns:
        Empty when every check holds; else one sentence with the check that fails and what was
        searched.
    """
    checks = parse_checks(pattern)
    # The package looks for the end of the line after the last match: there must be one.
    matcher = _Matcher(checks.opts, _Text("text", f"{text}\n"), checks)
    matcher.stderr = io.StringIO()
    if matcher.run() == 0:
        return ""
    said = _SAID.search(matcher.stderr.getvalue())
    return matcher.told(pattern, said[1] if said else "nothing to match with")


class _Text(FInput):
    """The text, and how far it is matched."""

    def advance_to_last_hole(self) -> None:
        """Go on behind what `CHECK-DAG` matched; the package's own prints a line on stdout."""
        rest = self.is_discontigous()
        if rest is not None:
            behind = rest.remainder_to_normal_range()
            self.move_to(behind.start)
            self.range = behind

    @property
    def last(self) -> int:
        """Position of the last character that is no white space."""
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

    def told(self, pattern: str, said: str) -> str:
        """Return the failure in one sentence.

        Args:
            pattern: The pattern.
            said: The package's own words.
        """
        check, text = self._failed, self.file
        if check is None:
            return said
        name = f"`{render_check(check, pattern)}`"
        if self._found is not None:
            at = self._found.start()
            return f"{name} finds line {text.number(at)}: {text.line(at)}"
        if not said.startswith(("Couldn't match", f"{check.check_name}: ")):
            return f"{name}: {said[:1].lower()}{said[1:]}"
        return f"{name} {self._unmatched(check)}"

    def _unmatched(self, check: CheckOp) -> str:
        """Return where a check that must match did not."""
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
        """Check that something is not there, up to the next match: it is no part of the search."""
        start, end = search_range.start, search_range.end
        if self._latest is not None and start <= self._latest[1] < end:
            end = self._latest[1]
        try:
            super().check_not(op, InputRange(start, end))
        except ErrorOnMatch as error:
            self._failed, self._found = error.op, error.match
            raise

    def capture_results(self, match: re.Match[str], capture: dict[str, Any], op: CheckOp) -> None:
        """Keep what variables matched; nothing at all is a failure, not a warning on stderr."""
        if self._latest is None or self._latest[0] is not op:
            self._latest = (op, match.start())
        empty = [name for name, (group, _) in capture.items() if not match.group(group)]
        if empty:
            raise CheckError(f"nothing captured for variable {', '.join(empty)}", op)
        super().capture_results(match, capture, op)

    def find_prefix_match_for(self, op: CheckOp) -> None:
        """Remember the check; the near match that the package would look for is not shown."""
        self._failed = op
