"""FileCheck claims of a case, read before anything runs: what is no claim is an error at once."""

from __future__ import annotations

import io
import re
import warnings
from typing import TYPE_CHECKING, Any, Final

from filecheck.error import ParseError
from filecheck.ops import NumSubst
from filecheck.options import Options
from filecheck.parser import Parser, pattern_for_opts

if TYPE_CHECKING:
    from filecheck.ops import CheckOp

FILECHECK: Final = "filecheck"
"""Name of the claim among a case's `facts`."""
CLAIMABLE: Final = ("hlo", "stablehlo", "jaxpr")
"""IRs that a claim may be about."""

_OPTIONS: Final = Options(match_filename="claim")
_DIRECTIVE, _COMMENT = pattern_for_opts(_OPTIONS)


def parse_checks(pattern: str) -> Parser:
    """Return the checks of a claim, to be matched in their order.

    Args:
        pattern: A check a line: `CHECK: all-reduce`.
    """
    return Parser(_OPTIONS, io.StringIO(pattern), _DIRECTIVE, _COMMENT)


def find_claim_problem(claimed: Any) -> str:
    """Say what is wrong with the value of a `filecheck` claim.

    Args:
        claimed: What stands in the case: patterns by IR.

    Returns:
        One sentence, empty when nothing is wrong.
    """
    if not isinstance(claimed, dict) or not claimed:
        return f"got {claimed!r}, expected a pattern for some of {', '.join(CLAIMABLE)}"
    for ir, pattern in claimed.items():
        if ir not in CLAIMABLE:
            return f"got {ir!r}, expected some of {', '.join(CLAIMABLE)}"
        problem = _wrong_pattern(pattern)
        if problem:
            return f"{ir}: {problem}"
    return ""


def _wrong_pattern(pattern: Any) -> str:
    if not isinstance(pattern, str):
        return f"got {pattern!r}, expected text of lines such as `CHECK: all-reduce`"
    try:
        checks = list(parse_checks(pattern))
    except ParseError as error:
        return f"line {error.line_no} `{error.offending_line.strip()}`: {_lower(error.message)}"
    except ValueError as error:  # a POSIX class that has no translation
        return f"{_lower(str(error))}; write the characters out"
    for number, line in enumerate(pattern.splitlines(), 1):
        # The parser passes over what it does not know: a typing error would claim nothing.
        if line.strip() and not _DIRECTIVE.search(line) and not line.lstrip().startswith("COM:"):
            return (
                f"line {number} `{line.strip()}` is no check, expected CHECK, CHECK-NEXT, "
                "CHECK-SAME, CHECK-NOT, CHECK-DAG, CHECK-COUNT-n, CHECK-LABEL or CHECK-EMPTY "
                "with a colon, or a comment that begins with COM:"
            )
    if not checks:
        return "no check, expected lines such as `CHECK: all-reduce`"
    return next(filter(None, (_wrong_check(check, pattern) for check in checks)), "")


def render_check(check: CheckOp, pattern: str) -> str:
    """Return the line of a pattern that a check was read from."""
    return pattern.splitlines()[check.source_line - 1].strip()


def _wrong_check(check: CheckOp, pattern: str) -> str:
    where = f"line {check.source_line} `{render_check(check, pattern)}`"
    for part in check.uops:
        if isinstance(part, NumSubst):
            return f"{where}: arithmetic on variables is not understood; write the number out"
        expression = getattr(part, "content", "") or getattr(part, "pattern", "")
        if expression and type(part).__name__ != "Literal":
            try:
                with warnings.catch_warnings(action="error"):
                    re.compile(expression)
            except (re.error, FutureWarning) as error:
                return f"{where}: `{expression}` is no regular expression: {error}"
    return ""


def _lower(message: str) -> str:
    return f"{message[:1].lower()}{message[1:]}"
