"""The output of a program's run: printed text, times, XLA dumps, tracebacks of hangs."""

from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from conformance.errors import ConformanceError
from conformance.ir.analysis import analyse
from conformance.ir.graph import IrSyntaxError
from conformance.search.printed_times import UNIT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Rule = tuple[re.Pattern[str], str]

_NUMBER: Final = r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
_RULES: Final[Sequence[Rule]] = [
    (re.compile(pattern, flags), instead)
    for pattern, flags, instead in (
        # Output of jax.print_environment_info(); its lines differ between releases.
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
        (rf"(?<![\w.]){_NUMBER} ?{UNIT}\b(?!\s*[=(\[])", 0, "<time>"),
        (
            (r"\b((?:time|took|elapsed|duration|latency|wall|seconds|secs|ms)\b[^\d\n]{0,12}?)"
            r"\d+\.\d+(?:[eE][+-]?\d+)?"),
            re.IGNORECASE, r"\1<time>",
        ),
    )
]  # fmt: skip
OPTIMISED: Final = "*after_optimizations.txt"
"""Names of files that hold optimised HLO."""
_FRAME: Final = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+) in (?P<function>.*)$')
_PACKAGES: Final = re.compile(r"^.*/(?:site|dist)-packages/|^.*/lib/python3\.\d+/")
MARGIN: Final = 0.5
"""Seconds before the timeout at which Python dumps its tracebacks."""


def normalize_output(text: str, versions: Mapping[str, str]) -> str:
    """Return the output of a program without the facts of its environment.

    Args:
        text: Standard output.
        versions: Version of each package of the environment, by name.
    """
    for pattern, instead in _RULES:
        text = pattern.sub(instead, text)
    return _mask_versions(text, versions)


def _mask_versions(text: str, versions: Mapping[str, str]) -> str:
    """Return a text without the versions of packages.

    A version of two numbers, e.g. `2.3`, could also be a value: it is a version only next to the
    name of its package.
    """
    whole = {version for version in versions.values() if version.count(".") > 1}
    # jax.__version_info__ prints as a tuple.
    if jax := versions.get("jax"):
        numbers, *more = (", ".join(jax.split(".")[:count]) for count in (3, 4))
        for tuple_ in (f"({numbers})", f"({more[0]})"):
            text = text.replace(tuple_, "<version>")
    if whole:
        # The longest first: 0.9.0 is a prefix of 0.9.0.1.
        found = "|".join(re.escape(version) for version in sorted(whole, key=len, reverse=True))
        text = re.sub(rf"(?<![\w.])v?(?:{found})(?![\w]|\.\d)", "<version>", text)
    for name, version in versions.items():
        if version in whole or name not in text:
            continue
        named = rf"\b({re.escape(name)}\b[^\w\n]{{0,6}}(?:version[^\w\n]{{0,4}})?)"
        text = re.sub(rf"{named}{re.escape(version)}(?![\w]|\.\d)", r"\1<version>", text)
    return text


def read_times(note: Path) -> dict[str, float]:
    """Return the times that a program measured, by name.

    Args:
        note: File with a line of JSON for each time: `[kind, name, seconds]`.

    Returns:
        `own`, without imports, of the process that took longest; `region NAME`, the fastest entry
        of each region; `regions`, their sum. Empty if nothing was measured.
    """
    try:
        lines = note.read_bytes().splitlines()
    except OSError:
        return {}
    own = 0.0
    regions: dict[str, float] = {}
    for line in lines:
        try:
            kind, name, seconds = msgspec.json.decode(line, type=tuple[str, str, float])
        except msgspec.DecodeError:  # killed while it wrote
            continue
        if kind == "own":
            own = max(own, seconds)
        else:
            regions[f"region {name}"] = min(seconds, regions.get(f"region {name}", math.inf))
    found = {"own": own} if own else {}
    return {**found, **regions, **({"regions": sum(regions.values())} if regions else {})}


def find_metric(stdout: bytes, metric: re.Pattern[str]) -> float | None:
    """Return the last number that a pattern finds in the output of a program.

    Args:
        stdout: Standard output of the program.
        metric: The pattern; its first group is the number, or all of it.

    Returns:
        The number, None if the pattern finds none.
    """
    found = list(metric.finditer(stdout.decode("utf-8", "replace")))
    if not found:
        return None
    # The last match: programs print progress before their result.
    text = found[-1][1] if metric.groups else found[-1][0]
    try:
        return float((text or "").replace(",", ""))
    except ValueError:
        return None


class UnreadableDumpError(ConformanceError):
    """A dumped HLO that cannot be read."""


def make_dump_flags(folder: Path) -> tuple[str, ...]:
    """Return the flags that make XLA dump the programs that it compiles.

    Args:
        folder: Folder of the dumps.
    """
    return (f"--xla_dump_to={folder}", "--xla_dump_hlo_as_text")


def read_dump_facts(folder: Path) -> dict[str, Any]:
    """Return the combined facts of all compiled programs.

    Args:
        folder: Folder of the dumps of XLA.

    Returns:
        Sums of counts, unions of lists of names, and true if true for any program. Facts of a
        single program, such as its parameters, are left out. Empty if nothing was compiled.

    Raises:
        NotUnderstoodError: If a text is not understood.
        OSError: If a file cannot be read.
    """
    tables = []
    for file in sorted(folder.glob(OPTIMISED)):
        try:
            tables.append(analyse(file.read_text("utf-8", "surrogatepass"), "hlo").facts)
        except IrSyntaxError as error:
            raise UnreadableDumpError(f"{file.name}: {error}") from None
    return add_facts(tables)


def add_facts(tables: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the combined facts of several programs.

    Args:
        tables: Facts of each program.
    """
    sums: dict[str, Any] = {}
    for table in tables:
        for name, value in table.items():
            match value:
                case bool():
                    sums[name] = sums.get(name, False) or value
                case int() | float():
                    sums[name] = sums.get(name, 0) + value
                case dict():
                    sums[name] = Counter(sums.get(name, {})) + Counter(value)
                case [str(), *_]:
                    sums[name] = sorted({*sums.get(name, ()), *value})
                case _:
                    pass  # describes one program, as its parameters do
    return {name: dict(sum_) if isinstance(sum_, Counter) else sum_ for name, sum_ in sums.items()}


class _Frame(NamedTuple):
    file: str
    line: str
    function: str


def compute_dump_delay(timeout: float) -> float:
    """Return the seconds after which Python dumps its tracebacks."""
    return max(timeout - MARGIN, timeout / 2)


def locate_hang(note: Path, roots: Iterable[Path]) -> str:
    """Return the place where a program hangs, e.g. `a.py:3 in f, within jax/api.py:10 in wait`.

    Args:
        note: Tracebacks of `faulthandler`, of each process one after the other.
        roots: Folders in which files are the user's own.

    Returns:
        The place; empty if nothing was dumped.
    """
    try:
        text = note.read_text("utf-8", "replace")
    except OSError:  # nothing of it was Python
        return ""
    folders = tuple(root.resolve() for root in roots)
    threads = [
        list(_parse_frames(thread))
        for thread in re.split(r"^.*most recent call.*$", text, flags=re.MULTILINE)
    ]
    for frames in reversed(threads):  # the main thread is the last
        own = next((frame for frame in frames if _is_own(frame, folders)), None)
        if own is not None:
            inner = f", within {_format_frame(frames[0])}" if own != frames[0] else ""
            return f"{Path(own.file).name}:{own.line} in {own.function}{inner}"
    last = next((frames[0] for frames in reversed(threads) if frames), None)
    return _format_frame(last) if last else ""


def _is_own(frame: _Frame, folders: Iterable[Path]) -> bool:
    file = Path(frame.file).resolve()
    installed = _PACKAGES.match(frame.file) is not None
    return not installed and any(file.is_relative_to(folder) for folder in folders)


def _parse_frames(thread: str) -> Iterable[_Frame]:
    for line in thread.splitlines():
        if found := _FRAME.match(line):
            yield _Frame(**found.groupdict())


def _format_frame(frame: _Frame) -> str:
    return f"{_PACKAGES.sub('', frame.file)}:{frame.line} in {frame.function}"
