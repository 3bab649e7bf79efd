"""FileCheck claims of cases, checked for errors before a job runs."""

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

# The package demands a file name for its messages, which are replaced here.
_OPTIONS: Final = Options(match_filename="claim")
_DIRECTIVE, _COMMENT = pattern_for_opts(_OPTIONS)


def parse_checks(pattern: str) -> Parser:
    """Return a parser of the checks of a claim, in order.

    Args:
        pattern: FileCheck directives, one per line: `CHECK: all-reduce`.
    """
    return Parser(_OPTIONS, io.StringIO(pattern), _DIRECTIVE, _COMMENT)


def find_claim_problem(claimed: Any) -> str:
    """Return the first error in the value of a `filecheck` claim, empty if there is none.

    Args:
        claimed: Value of the claim: patterns by IR.
    """
    if not isinstance(claimed, dict) or not claimed:
        return f"got {claimed!r}, expected a pattern for some of {', '.join(CLAIMABLE)}"
    for ir, pattern in claimed.items():
        if ir not in CLAIMABLE:
            return f"got {ir!r}, expected some of {', '.join(CLAIMABLE)}"
        problem = _find_pattern_problem(pattern)
        if problem:
            return f"{ir}: {problem}"
    return ""


def _find_pattern_problem(pattern: Any) -> str:
    if not isinstance(pattern, str):
        return f"got {pattern!r}, expected text of lines such as `CHECK: all-reduce`"
    try:
        checks = list(parse_checks(pattern))
    except ParseError as error:
        return (
            f"line {error.line_no} `{error.offending_line.strip()}`: {_lower_first(error.message)}"
        )
    except ValueError as error:  # a POSIX class that filecheck cannot translate
        return f"{_lower_first(str(error))}; write the characters out"
    for number, line in enumerate(pattern.splitlines(), 1):
        # The parser ignores unknown lines: a misspelled directive would check nothing.
        if line.strip() and not _DIRECTIVE.search(line) and not line.lstrip().startswith("COM:"):
            return (
                f"line {number} `{line.strip()}` is not a check, expected CHECK, CHECK-NEXT, "
                "CHECK-SAME, CHECK-NOT, CHECK-DAG, CHECK-COUNT-n, CHECK-LABEL or CHECK-EMPTY "
                "with a colon, or a comment that begins with COM:"
            )
    if not checks:
        return "no check, expected lines such as `CHECK: all-reduce`"
    return next(filter(None, (_find_check_problem(check, pattern) for check in checks)), "")


def render_check(check: CheckOp, pattern: str) -> str:
    """Return the line of a pattern that a check was read from."""
    return pattern.splitlines()[check.source_line - 1].strip()


def _find_check_problem(check: CheckOp, pattern: str) -> str:
    where = f"line {check.source_line} `{render_check(check, pattern)}`"
    for part in check.uops:
        if isinstance(part, NumSubst):
            return f"{where}: arithmetic on variables is not supported; write the number out"
        # Parts have their expression under either name, depending on their class.
        expression = getattr(part, "content", "") or getattr(part, "pattern", "")
        if expression and type(part).__name__ != "Literal":
            try:
                # A FutureWarning is about a nested set, e.g. `[[`, whose meaning may change.
                with warnings.catch_warnings(action="error"):
                    re.compile(expression)
            except (re.error, FutureWarning) as error:
                return f"{where}: `{expression}` is not a regular expression: {error}"
    return ""


def _lower_first(message: str) -> str:
    return f"{message[:1].lower()}{message[1:]}"
