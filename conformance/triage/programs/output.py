"""Normalises the output of a program: facts of its environment are no behaviour. Pure.

A script as somebody pasted it prints versions, devices, paths, addresses and timings. They differ
from cell to cell, and mostly from run to run, whatever jax does.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Rule = tuple[re.Pattern[str], str]

_UNIT: Final = r"(?:ns|us|µs|μs|ms|s|secs?|seconds?|min|minutes?)"
_NUMBER: Final = r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
_RULES: Final[Sequence[Rule]] = [
    (re.compile(pattern, flags), instead)
    for pattern, flags, instead in (
        # What jax.print_environment_info() prints; its lines differ between releases.
        (
            (r"^jax: .*\njaxlib: .*(?:\n(?:numpy|python|jax\.devices|device info|process_count"
            r"|platform)\b.*(?:\n\[.*\])?)*(?:\n+[A-Z][A-Z0-9_]*=.*)*\n*"),
            re.MULTILINE, r"<environment>\n",
        ),
        (r"\b3\.\d+\.\d+\S* \([^()\n]*\) ?\n?\[[^\[\]\n]*\]", 0, "<python>"),  # sys.version
        (r"sys\.version_info\([^()\n]*\)", 0, "<python>"),
        (r"\b([Pp]ython)([ :=/-]*)3\.\d+(?:\.\d+)?", 0, r"\1\2<version>"),
        (r"(?:/[^\s/'\":,()\[\]]+)+/(?:site|dist)-packages/", 0, "<packages>/"),
        (r"/tmp/tmp[a-z0-9_]{8}\b", 0, "<folder>"),  # noqa: S108 - as tempfile names them
        (r'(File "<packages>[^"\n]*"), line \d+', 0, r"\1"),
        (r"\bTFRT_CPU_(\d+)\b", 0, r"<cpu \1>"),
        (r"\bCpuDevice\(id=(\d+)[^()\n]*\)", 0, r"<cpu \1>"),
        (r"(?<![\w.])cpu:(\d+)\b", 0, r"<cpu \1>"),
        (r"\b0x[0-9a-fA-F]{6,16}\b", 0, "<address>"),
        # id() of an object on the heap of a 64-bit Linux process.
        (r"(?<![\w.])(?:9[345]|1[34]\d)\d{12}(?![\w.])", 0, "<address>"),
        (r"\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?", 0, "<date>"),
        (rf"(?<![\w.]){_NUMBER} ?{_UNIT}\b(?!\s*[=(\[])", 0, "<time>"),
        (
            (r"\b((?:time|took|elapsed|duration|latency|wall|seconds|secs|ms)\b[^\d\n]{0,12}?)"
            r"\d+\.\d+(?:[eE][+-]?\d+)?"),
            re.IGNORECASE, r"\1<time>",
        ),
    )
]  # fmt: skip


def normalize_output(text: str, versions: Mapping[str, str]) -> str:
    """Return the output of a program without the facts of its environment.

    Args:
        text: Standard output.
        versions: Version of each package of the environment, by name.
    """
    for pattern, instead in _RULES:
        text = pattern.sub(instead, text)
    return _without_versions(text, versions)


def _without_versions(text: str, versions: Mapping[str, str]) -> str:
    """Return a text without the versions of packages.

    One of two numbers, e.g. `2.3`, could as well be a value: it counts as a version beside the name
    of its package alone.
    """
    whole = {version for version in versions.values() if version.count(".") > 1}
    if jax := versions.get("jax"):
        numbers, *more = (", ".join(jax.split(".")[:count]) for count in (3, 4))
        for tuple_ in (f"({numbers})", f"({more[0]})"):
            text = text.replace(tuple_, "<version>")
    if whole:
        found = "|".join(re.escape(version) for version in sorted(whole, key=len, reverse=True))
        text = re.sub(rf"(?<![\w.])v?(?:{found})(?![\w]|\.\d)", "<version>", text)
    for name, version in versions.items():
        if version in whole or name not in text:
            continue
        beside = rf"\b({re.escape(name)}\b[^\w\n]{{0,6}}(?:version[^\w\n]{{0,4}})?)"
        text = re.sub(rf"{beside}{re.escape(version)}(?![\w]|\.\d)", r"\1<version>", text)
    return text
