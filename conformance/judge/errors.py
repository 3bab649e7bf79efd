"""The normal form of error messages, which only changes if JAX changes."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

VERSION = 3
"""Version of the normal form; recorded with each golden error, another one is tainted."""

# Goldens are read in pull requests: a longer message identifies the error no better.
MAX_LINES = 24
MAX_CHARS = 2000
_MAX_INPUT = 1 << 16
"""Characters of a message that are normalised; a dumped module beyond them identifies nothing."""

_PASSES = 8
"""Passes of the rules, until nothing changes: a replacement may complete another pattern."""

_NUMBER = re.compile(r"(?<!\w)-?\d+(?:[.,]\d+)*(?:e[+-]?\d+)?(?!\w)")
_LABEL = re.compile(r"\bagainst (?:reference and golden|reference|golden) ")
_SUFFIXES = "py|pyi|pyx|cc|cpp|c|h|hpp|inc|rs|so|mlir|ipynb"

_FOLDERS = r"(?<![\w./:)<>~-])/(?:[\w.+@~=-]+/)+(?=[\w<])"


def _sort_listed(matched: re.Match[str]) -> str:
    return matched[1] + ", ".join(sorted(matched[2].split(", ")))


_RULES: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = tuple(
    (re.compile(pattern, flags), replacement)
    for pattern, replacement, flags in (
        # Colours of a terminal.
        (r"\x1b\[[0-9;]*[A-Za-z]", "", 0),
        # jax's note on traceback filtering, with its rulers.
        (
            (
                r"(?:^-{5,}\s*)?For simplicity, JAX has removed its internal frames.*?"
                r"(?:include these\.|\Z)(?:\s*^-{5,}\s*?$)?"
            ),
            "",
            re.DOTALL | re.MULTILINE,
        ),
        # Frames of a traceback quoted inside a message: depth and lines belong to jax's inside.
        (r"^[ \t]*File \"[^\"\n]*\", line \d+(?:, in .*)?(?:\n {4,}.*)*\n?", "", re.MULTILINE),
        # The stack on which a leaked tracer was made: of the user's frames and of who called them.
        (
            (
                r"^-{5,}[ \t]*\nWhen the value was created, the final \S+ stack frames? .*were:"
                r"[ \t]*\n-{5,}[ \t]*\n(?:[ \t]*\S+\.py:.* \(.*\)[ \t]*(?:\n|\Z))*"
            ),
            "",
            re.MULTILINE,
        ),
        # Where XLA suspects the fault: the frames of the caller, which differ between processes.
        (
            r"^[ \t]*Suspected Python Code Location:[ \t]*(?:\n|\Z)(?:.*\][ \t]*(?:\n|\Z))*",
            "",
            re.MULTILINE,
        ),
        # Where MLIR's verifier saw an operation made: files, lines and columns of all who called.
        (r"(?:^|[ \t]+)at loc\(.*", "", re.MULTILINE),
        # Links move with the documentation's host and chapters.
        (r"https?://[^\s)>\]]*[^\s)>\].,;]", "<url>", 0),
        (r"\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?Z?", "<date>", 0),
        # The head of a log line: severity, date, time, thread, source.
        (r"^[IWEF]\d{4} [\d:.]+ +\d+ [\w./-]+:(?:\d+|<n>)\] ", "", re.MULTILINE),
        # Absolute paths keep their last component.
        (_FOLDERS, "", 0),
        # Lines of source move with every release of jax and with every edit of a case.
        (rf"(\.(?:{_SUFFIXES})):\d+(?::\d+)?\b", r"\1:<n>", 0),
        (r"\bline \d+(?:, column \d+)?\b", "line <n>", 0),
        (r"\b(source_(?:end_)?(?:line|column)|stack_frame_id)=\d+", r"\1=<n>", 0),
        # Short hexadecimal numbers are kept: they are values and flags, not addresses.
        (r"\b0x[0-9a-fA-F]{5,}\b", "<address>", 0),
        (r"Var\(id=\d+\)", "Var(id=<n>)", 0),
        (r"\bid=\d{6,}\b", "id=<n>", 0),
        # A process of fewer than three digits is a rank of a distributed job, which has a meaning.
        (r"\b(pid|tid|thread)([ =:#]+)\d+\b", r"\1\2<n>", re.IGNORECASE),
        (r"\b(process)([ =:#]+)\d{3,}\b", r"\1\2<n>", re.IGNORECASE),
        (r"\btmp[a-z0-9_]{8}\b", "<tmp>", 0),
        (
            (
                r"(?<![\w.])\d+(?:\.\d+)?(?:e-?\d+)? ?"
                r"(?:ns|us|µs|ms|s|secs?|seconds?|min|minutes?)\b"
            ),
            "<time>",
            0,
        ),
        # One spelling of what jax renamed without a change of behaviour; weak types are `~`.
        (r"ShapedArray\((\w+\[[^\]\n]*\]), weak_type=True\)", r"~\1", 0),
        (r"ShapedArray\((\w+\[[^\]\n]*\])\)", r"\1", 0),
        (
            r"Traced<(~?\w+\[[^\]\n]*\])>with<(\w+?)Trace(?:\(level=\d+/\d+\))?>",
            r"\2Tracer(\1)",
            0,
        ),
        # jax 0.4.36 made tracing stackless: tracers have no level any more.
        (r"\(level=\d+/\d+\)", "", 0),
        (r"\bDynamicJaxprTracer\(", "JitTracer(", 0),
        (r"\bPartitionSpec\(", "P(", 0),
        (r"TFRT_CPU_(\d+)", r"cpu:\1", 0),
        # Which call reaches the limit depends on the frames below the case.
        (r"(maximum recursion depth exceeded) (?:in|while) [\w ]+", r"\1", 0),
        # jax lists a set of classes, whose order differs between processes.
        (r"(\bAccepted dtypes .*?are subtypes of )(\w+(?:, \w+)+)", _sort_listed, 0),
        # Counters jax and XLA append to names.
        (r"\bjit__lambda_\b", "jit__lambda", 0),
        (r"\b(jit_\w*?[A-Za-z])(?:[._]\d+)+\b", r"\1", 0),
        (r"(%[A-Za-z_][\w-]*?)(?:\.\d+)+(?![\w.])", r"\1", 0),
    )
)


def make_signature(type_: str, message: str) -> str:
    """Return a text that identifies an error across hosts, runs and source lines.

    Args:
        type_: Exception type name, or the signal of a crash.
        message: Whole message, untouched or normalised already.

    Returns:
        `Type: message` with the message in normal form; `Type` alone when nothing is left of it.
    """
    text = normalise(message)
    return f"{type_}: {text}" if text else type_


def drop_folders(message: str) -> str:
    """Return a message with absolute paths reduced to their last component.

    Args:
        message: Any text.
    """
    return re.sub(_FOLDERS, "", message)


def normalise_cause(reason: str) -> str:
    """Return a reason without the parts that differ between runs: addresses, paths, times, numbers.

    Whether a number differs from the reference or the golden is not part of the cause either.

    Args:
        reason: Any text.
    """
    # Numbers last: the rules of the normal form recognise times and addresses by their digits.
    return _NUMBER.sub("#", strip_label(normalise(reason)))


def strip_label(reason: str) -> str:
    """Return a reason without the label of the expected number.

    Args:
        reason: E.g. `out 1 against reference 0, exact`.
    """
    return _LABEL.sub("against ", reason)


# Two dozen substitutions over up to 64 KiB; jobs of one root cause repeat the same message.
@lru_cache(maxsize=1024)
def normalise(message: str) -> str:
    """Return a message in normal form.

    Addresses, directories, line numbers, timings, process ids, temporary names, counters and
    quoted tracebacks go; renamed spellings (`PartitionSpec` and `P`) become one; whitespace is
    folded; what is too long ends in the hash of the rest.

    Args:
        message: Any text.

    Returns:
        The normal form; `normalise(normalise(m)) == normalise(m)`.
    """
    text = message[:_MAX_INPUT]
    for _ in range(_PASSES):
        before = text
        for pattern, replacement in _RULES:
            text = pattern.sub(replacement, text)
        text = _cap(_fold(text))  # within the loop: a cut may complete a pattern
        if text == before:
            break
    return text


def _fold(text: str) -> str:
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return "\n".join(line for line in lines if line)


def _cap(text: str) -> str:
    lines = text.split("\n")
    if len(lines) <= MAX_LINES and len(text) <= MAX_CHARS:
        return text
    # 40 characters are reserved for the line with the hash, so that the result is not cut again.
    head = "\n".join(lines[: MAX_LINES - 1])[: MAX_CHARS - 40].rstrip()
    digest = hashlib.sha256(text[len(head) :].strip().encode("utf-8", "surrogatepass")).hexdigest()
    return f"{head}\n[rest: sha256 {digest[:12]}]"
