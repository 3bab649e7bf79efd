"""Gives damaged inputs to every reader: it must read them, or raise the error of the project.

`python benchmarks/attack/mutated_inputs.py [--inputs N] [--seed S] [--only READER]`. Each reader
gets whole inputs and mutations of them: flipped and deleted bytes, cut ends, deep nesting, huge
numbers, wrong types, null bytes, invalid UTF-8. It must end within ten seconds, without any
other exception. The same seed gives the same inputs. Exit status 1 if a reader fails.
"""

from __future__ import annotations

import argparse
import logging
import re
import signal
import sys
import tempfile
import time
import traceback
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final

import msgspec

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from conformance.cells.lock import read_foreign_pins, read_lock  # noqa: E402
from conformance.cells.matrix import load_matrix  # noqa: E402
from conformance.cells.releases import load_releases  # noqa: E402
from conformance.corpus.behaviour_changes import load_families  # noqa: E402
from conformance.corpus.discovery import BrokenCasesError, discover  # noqa: E402
from conformance.corpus.project import find_settings  # noqa: E402
from conformance.engine.cache.blobs import BlobStore  # noqa: E402
from conformance.engine.cache.results import ResultCache  # noqa: E402
from conformance.engine.calibration import load_calibration, locate_calibration  # noqa: E402
from conformance.engine.durations import decode_durations  # noqa: E402
from conformance.engine.runs.digests import DigestStore, make_digest  # noqa: E402
from conformance.engine.runs.directory import RunDirectory  # noqa: E402
from conformance.engine.runs.loader import load_run, read_evidence  # noqa: E402
from conformance.engine.shards import merge_shards, order_shards  # noqa: E402
from conformance.errors import ConformanceError  # noqa: E402
from conformance.golden.contents import decode, decode_facts  # noqa: E402
from conformance.golden.document import loads as load_document  # noqa: E402
from conformance.golden.layout import compute_content_id  # noqa: E402
from conformance.golden.store import decode_ir, load_content  # noqa: E402
from conformance.ir.analysis import analyse  # noqa: E402
from conformance.ir.difference import diff  # noqa: E402
from conformance.model.value import decode_value, encode_value  # noqa: E402
from conformance.report.suites.conformance_data import decode_history  # noqa: E402
from conformance.report.suites.conformance_markdown import render_conformance  # noqa: E402
from conformance.report.upgrade.file import decode_upgrade, make_upgrade_file  # noqa: E402
from conformance.review.decisions import DecisionLog  # noqa: E402
from conformance.store.database import parse_address  # noqa: E402
from conformance.store.store import Store  # noqa: E402
from conformance.suites.catalogue.definition import load_grouping, load_suite  # noqa: E402
from conformance.suites.known.deviations import load_deviations  # noqa: E402
from tests.builders import f32  # noqa: E402
from tests.engine.worlds import World  # noqa: E402
from tests.engine.written_runs import A, record, write  # noqa: E402
from tests.report.upgrades import OK, RAISED, Tried  # noqa: E402
from tests.store.nights import FINE, night  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Read = Callable[[Path], object]

SECONDS: Final = 10.0
"""Time that a reader may take for one input."""
DEEP: Final = 20_000
SMALL: Final = 8_000
"""Bytes of the inputs that are mutated: in larger ones most mutations are of the same kind."""
EVIDENCE: Final = b"""[{"cause": "c1", "case": "f/a", "cell": "jax0.6.2-py311-cpu8",
 "last_good": "0.6.1", "first_bad": "0.6.2", "confirmed": true, "repro": "repro/c1.py",
 "culprits": [{"package": "jax", "before": "0.6.1", "after": "0.6.2", "files": ["jax/a.py"]}],
 "untold": ["a sentence"]}]"""
SINCE: Final = b"""{"run": "r1", "started": "2026-05-01T10:00:00+00:00", "new": [{"id": "c1",
 "verdict": "regressed", "reason": "why", "jobs": [{"case": "f/a", "place": "cpu8"}], "run": "r1",
 "since": "2026-05-01T10:00:00+00:00", "nights": 3}], "moved": [{"artifact": "hlo", "place":
 "cpu8", "cases": ["f/a"]}], "installed": [{"place": "cpu8", "package": "numpy", "before": "1",
 "after": "2"}]}"""
CALIBRATION: Final = b"""{"host": {"system": "Linux"}, "unstable": [{"case": "f/a", "cell":
 "jax0.6.2-py311-cpu8", "case_hash": "h", "attempts": 5, "differing": 1, "example": "out 1",
 "day": "2026-05-01"}]}"""
_NUMBER: Final = re.compile(rb"\d+")
_WORD: Final = re.compile(rb"[A-Za-z_]{2,}")
_QUOTED: Final = re.compile(rb'"[^"\n]*"')


class TooLongError(BaseException):
    """A reader exceeded its time; a BaseException, so that no `except Exception` catches it."""


@dataclass(slots=True)
class Reader:
    """One reader, with whole inputs.

    Attributes:
        name: Name in the table.
        whole: Inputs that it reads.
        read: Function that reads a file, which is alone in its folder.
        suffix: Suffix of the file name.
    """

    name: str
    whole: list[bytes]
    read: Read
    suffix: str = ""


@dataclass(slots=True)
class Row:
    """Results of one reader over its inputs.

    Attributes:
        read: Number of inputs it read.
        refused: Number of inputs it refused with the error of the project.
        failed: Other outcomes, each with the number of its input.
        slowest: Seconds of the slowest input.
    """

    read: int = 0
    refused: int = 0
    failed: list[str] = field(default_factory=list)
    slowest: float = 0.0


def mutate(data: bytes, rng: Random) -> bytes:
    """Return an input with one to three mutations."""
    for _ in range(rng.randint(1, 3)):
        data = rng.choice(MUTATIONS)(data, rng)
    return data


def _flip(data: bytes, rng: Random) -> bytes:
    at = rng.randrange(len(data) or 1)
    return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]


def _delete(data: bytes, rng: Random) -> bytes:
    at = rng.randrange(len(data) or 1)
    return data[:at] + data[at + rng.randint(1, 40) :]


def _cut(data: bytes, rng: Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _insert(data: bytes, rng: Random, inserted: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + inserted + data[at:]


def _nest(data: bytes, rng: Random) -> bytes:
    opened, closed = rng.choice(((b"[", b"]"), (b"(", b")"), (b"{", b"}"), (b'{"a":', b"}")))
    closing = closed * DEEP if rng.random() < 1 / 2 else b""
    return _replace(data, rng, rng.choice((_NUMBER, _QUOTED)), opened * DEEP + b"1" + closing)


def _replace(data: bytes, rng: Random, pattern: re.Pattern[bytes], replacement: bytes) -> bytes:
    found = list(pattern.finditer(data))
    if not found:
        return _insert(data, rng, replacement)
    match = rng.choice(found)
    return data[: match.start()] + replacement + data[match.end() :]


def _number(data: bytes, rng: Random) -> bytes:
    huge = (b"9" * 5000, b"1e999", b"-1", b"18446744073709551616", b"0", b"1e-400", b"NaN")
    return _replace(data, rng, _NUMBER, rng.choice(huge))


def _type(data: bytes, rng: Random) -> bytes:
    other = (b"null", b"[]", b"{}", b"7", b"true", b'""', b'"x"', b"[[1]]", b"1.5", b'{"a": 1}')
    return _replace(data, rng, rng.choice((_NUMBER, _QUOTED, _WORD)), rng.choice(other))


def _bytes(data: bytes, rng: Random) -> bytes:
    odd = (b"\0", b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", b"\r", b"\x1b[2J", b"\xe2\x80\xae")
    return _insert(data, rng, rng.choice(odd))


def _twice(data: bytes, rng: Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return _insert(data, rng, data[at : at + rng.randint(1, 400)])


def _empty(data: bytes, rng: Random) -> bytes:  # noqa: ARG001 - same signature as the others
    return rng.choice((b"", b"\n", b"{}", b"null", b"[]"))


MUTATIONS: Final = (
    _flip, _flip, _delete, _cut, _nest, _number, _number, _type, _type, _bytes, _twice, _empty,
)  # fmt: skip


@contextmanager
def limit_time() -> Iterator[None]:
    """Raise TooLongError in the block after the time limit."""

    def end(*_: object) -> None:
        raise TooLongError

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def attack_reader(reader: Reader, inputs: int, seed: int) -> Row:
    """Give a reader its whole inputs, which it must accept, and mutations of them."""
    row = Row()
    # Negative numbers are the whole inputs, which the table does not count.
    for number in range(-len(reader.whole), inputs):
        rng = Random(f"{seed} {reader.name} {number}")  # noqa: S311 - reproducible
        data = reader.whole[number] if number < 0 else mutate(rng.choice(reader.whole), rng)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / f"input{reader.suffix}"
            file.write_bytes(data)
            _try_input(reader, file, number, row)
    return row


def _try_input(reader: Reader, file: Path, number: int, row: Row) -> None:
    start = time.perf_counter()
    try:
        with limit_time():
            reader.read(file)
        row.read += number >= 0
    except ConformanceError as error:
        row.refused += number >= 0
        if number < 0:
            row.failed.append(f"whole input: {error}")
        elif "\n" in str(error) and not isinstance(error, BrokenCasesError):
            row.failed.append(f"input {number}: its error has several lines: {str(error)[:200]!r}")
    except (Exception, TooLongError) as error:  # noqa: BLE001 - the attack looks for any
        where = traceback.extract_tb(error.__traceback__)
        ours = [f"{one.filename}:{one.lineno}" for one in where if "conformance" in one.filename]
        problem = f"{type(error).__name__}: {str(error)[:100]} at {(ours or ['?'])[-1]}"
        row.failed.append(f"input {number}: {problem}")
    row.slowest = max(row.slowest, time.perf_counter() - start)


def make_readers(folder: Path) -> list[Reader]:
    """Return every reader.

    Args:
        folder: Folder for the files that they need.
    """
    return [*_project_readers(), *_run_readers(folder), *_cache_readers(folder), *_ir_readers()]


def _project_readers() -> Iterator[Reader]:
    cases = sorted((ROOT / "cases").glob("*/*.py"))
    small = [one.read_bytes() for one in cases if one.stat().st_size < SMALL]
    yield Reader("case files", small[:12], lambda file: discover([file]), ".py")
    matrices = (one.read_bytes() for one in sorted((ROOT / "matrix").glob("*.toml")))
    releases = load_releases(ROOT / "matrix")
    yield Reader(
        "matrices",
        [one for one in matrices if b"[matrix]" in one],
        lambda file: load_matrix(str(file), (ROOT / "matrix",), releases),
        ".toml",
    )
    table = (ROOT / "matrix" / "releases.toml").read_bytes()
    yield Reader("table of releases", [table], load_releases, ".toml")
    locks = sorted((ROOT / "matrix" / "locks").glob("*.txt"))[::12]
    whole = [one.read_bytes() for one in locks]
    yield Reader("locks", whole, lambda file: (read_lock(file), read_foreign_pins(file)), ".txt")
    pylock = b'lock-version = "1.0"\n[[packages]]\nname = "jax"\nversion = "0.6.2"\n'
    yield Reader("locks of other tools", [pylock], read_foreign_pins, ".toml")
    yield from _suite_readers()


def _suite_readers() -> Iterator[Reader]:
    suite = ROOT / "suites" / "array-api-tests"
    text = (suite / "deviations.toml").read_bytes()
    known = text[:SMALL].rpartition(b"\n\n")[0]
    yield Reader("deviations", [known], _read_deviations, ".toml")
    yield Reader("suites", [(suite / "suite.toml").read_bytes()], _read_suite, ".toml")
    groups = (suite / "groups.toml").read_bytes()
    yield Reader("suites: groups", [groups], _read_groups, ".toml")
    history = (ROOT / "reports" / "array-api.json").read_bytes()
    yield Reader("suites: history", [history], _read_history, ".json")
    changes = sorted((ROOT / "cases").glob("*/changes.toml"))[:4]
    yield Reader("changes", [one.read_bytes() for one in changes], _read_changes, ".toml")
    settings = b"""[tool.conformance]
with = ["optax==0.2.4"]

[[tool.conformance.functions]]
function = "mine.train:step"
arguments = [[1.0, 2.0]]
jit = false
devices = 2
"""
    yield Reader("settings", [settings], _read_settings, ".toml")


def _read_deviations(file: Path) -> None:
    (file.parent / "deviations.toml").write_bytes(file.read_bytes())
    load_deviations(file.parent)


def _read_suite(file: Path) -> None:
    (file.parent / "s").mkdir()
    (file.parent / "s" / "suite.toml").write_bytes(file.read_bytes())
    load_suite("s", file.parent)


def _read_groups(file: Path) -> None:
    (file.parent / "groups.toml").write_bytes(file.read_bytes())
    load_grouping(file.parent)("test_creation.py::test_arange")


def _read_history(file: Path) -> None:
    render_conformance(decode_history(file.read_bytes(), str(file)))


def _read_changes(file: Path) -> None:
    (file.parent / "family").mkdir()
    (file.parent / "family" / "changes.toml").write_bytes(file.read_bytes())
    load_families(file.parent)


def _read_settings(file: Path) -> None:
    (file.parent / "pyproject.toml").write_bytes(file.read_bytes())
    find_settings(file.parent)


def _run_readers(folder: Path) -> Iterator[Reader]:
    run = write(folder / "run", record("f/a", A), record("f/b", A), request={"shard": "1/1"})
    text = (run.path / "run.json").read_bytes()
    lines = (run.path / "results.jsonl").read_bytes()

    def read_as(name: str) -> Read:
        def read(file: Path) -> None:
            (file.parent / "run.json").write_bytes(text)
            (file.parent / "results.jsonl").write_bytes(lines)
            file.rename(file.parent / name)
            directory = RunDirectory(file.parent)
            loaded = load_run(directory)
            make_digest(directory)
            read_evidence(directory)
            directory.read_since()
            merge_shards(order_shards([loaded]))

        return read

    yield Reader("run.json", [text], read_as("run.json"))
    yield Reader("results.jsonl", [lines], read_as("results.jsonl"))
    yield Reader("evidence.json", [EVIDENCE], read_as("evidence.json"))
    yield Reader("since.json", [SINCE], read_as("since.json"))
    upgraded = Tried(folder / "upgrade").case("f/a", OK, OK, RAISED, RAISED).upgraded()
    yield Reader(
        "upgrade.json",
        [msgspec.json.encode(make_upgrade_file(upgraded))],
        lambda file: decode_upgrade(file.read_bytes(), str(file)),
    )
    yield Reader("calibration", [CALIBRATION], _read_calibration)
    yield Reader(
        "review.json",
        [b'{"format": 1, "decisions": [], "same": {"a": "b"}}'],
        lambda file: DecisionLog.loads(file.read_bytes(), str(file)),
    )
    yield Reader(
        "durations",
        [b'{"seconds": {"cpu": {"f/a": 1.5, "f/b": 2}}}'],
        lambda file: decode_durations(file.read_bytes(), str(file)),
    )
    yield Reader("values", [encode_value(f32(1, 2))], lambda file: decode_value(file.read_bytes()))
    yield Reader("goldens", _load_span_files(), _read_golden)
    yield from _content_readers()
    entries = [night(n, {("f/a", A): FINE, ("f/b", A): FINE}) for n in (1, 2)]
    Store(parse_address(str(folder / "history.db")), lambda _: None).add(*entries)
    yield Reader("store", [(folder / "history.db").read_bytes()], _read_store, ".db")


def _read_calibration(file: Path) -> None:
    target = locate_calibration(file.parent)
    target.parent.mkdir()
    file.rename(target)
    load_calibration(file.parent)


def _content_readers() -> Iterator[Reader]:
    """Yield the readers of golden contents; the content id is that of the damaged bytes."""
    for artifact in ("value", "error", "facts", "jaxpr", "stablehlo", "hlo"):
        files = sorted((ROOT / "cases").glob(f"*/golden/*/*/{artifact}.*"))
        small = [file.read_bytes() for file in files if file.stat().st_size < SMALL]
        step = max(1, len(small) // 8)
        yield Reader(f"goldens: {artifact}", small[::step], _make_content_reader(artifact))


def _make_content_reader(artifact: str) -> Read:
    decoders: dict[str, Callable[[bytes], object]] = {
        "value": partial(decode, "value"),
        "error": partial(decode, "error"),
        "facts": decode_facts,
    }

    def read(file: Path) -> None:
        content = compute_content_id(artifact, file.read_bytes())
        load_content(file, content, decoders.get(artifact, decode_ir))

    return read


def _load_span_files() -> list[bytes]:
    found = sorted((ROOT / "cases").glob("*/golden/*/*/spans.toml"))[::200]
    return [file.read_bytes() for file in found]


def _read_golden(file: Path) -> None:
    load_document(file.read_text(encoding="utf-8", errors="replace"), file)


def _read_store(file: Path) -> None:
    store = Store(parse_address(str(file)), lambda _: None, 1)
    store.load_runs()
    store.load_spans("f/a")
    store.load_digests()
    store.load_regressions()


def _cache_readers(folder: Path) -> Iterator[Reader]:
    world = World(folder / "world", "one")
    world.run("first", fresh=False)
    cache = folder / "world" / "cache"
    blobs = RunDirectory(folder / "taken").blobs

    def read_as(entry: Path) -> Read:
        def read(file: Path) -> None:
            entry.write_bytes(file.read_bytes())
            found = ResultCache(cache)
            found.take(world.jobs[0], blobs)
            found.verdicts.take(world.jobs, blobs)

        return read

    for kind in ("results", "settled"):
        (entry,) = (one for one in (cache / kind).rglob("*") if one.is_file())
        yield Reader(f"cache: {kind}", [entry.read_bytes()], read_as(entry))
    run = write(folder / "digested", record("f/a", A))
    DigestStore(folder / "digests").get(run)
    (entry,) = (folder / "digests").iterdir()

    def read_digest(file: Path) -> None:
        entry.write_bytes(file.read_bytes())
        DigestStore(folder / "digests").get(run)

    yield Reader("cache: digests of runs", [entry.read_bytes()], read_digest)
    store = BlobStore(folder / "blobs")
    name = store.put(bytes(range(256)) * 1000)
    (blob,) = store.folder.iterdir()

    def read_blob(file: Path) -> None:
        blob.write_bytes(file.read_bytes())
        store.get(name)

    yield Reader("blobs", [blob.read_bytes()], read_blob)


def _ir_readers() -> Iterator[Reader]:
    ir = ROOT / "tests" / "ir"
    for kind, files in (
        ("hlo", (ir / "samples").rglob("*.hlo")),
        ("stablehlo", (ir / "samples").rglob("*.generic")),
        ("jaxpr", (ir / "jaxpr" / "samples").glob("*.json")),
    ):
        small = (file for file in sorted(files) if file.stat().st_size < SMALL)
        whole = [file.read_bytes() for file in islice(small, 8)]
        yield Reader(f"IR: {kind}", whole, _make_ir_reader(kind, whole[0].decode()))


def _make_ir_reader(kind: str, other: str) -> Read:
    def read(file: Path) -> None:
        text = file.read_bytes().decode("utf-8", "surrogatepass")
        analyse(text, kind)
        diff(text, text, kind=kind)
        diff(other, text, kind=kind)

    def read_text(file: Path) -> None:
        try:
            read(file)
        except UnicodeDecodeError:  # the command line refuses such a file before it is an IR
            raise ConformanceError("no text") from None

    return read_text


def main() -> int:
    """Attack every reader, and print a row for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--inputs", type=int, default=2000, help="mutated inputs, over all readers")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="part of the name of a reader")
    options = parser.parse_args()
    logging.disable(logging.WARNING)  # every damaged cache entry is logged
    with tempfile.TemporaryDirectory() as folder:
        every = [one for one in make_readers(Path(folder)) if options.only in one.name]
        each = -(-options.inputs // len(every))
        print(f"| reader | inputs | read | refused | failed | slowest, s |\n|{'---|' * 6}")
        failed = []
        for reader in every:
            row = attack_reader(reader, each, options.seed)
            failed += [f"{reader.name}: {one}" for one in row.failed]
            print(
                f"| {reader.name} | {each} | {row.read} | {row.refused} | {len(row.failed)} "
                f"| {row.slowest:.2f} |",
                flush=True,
            )
    print(*failed, sep="\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
