"""Compares `conformance scan` with running: libraries of 2024 with their tests on a new jax.

    python benchmarks/scan_recall.py [--from 0.4.30] [--to 0.12.0.1] --folder FOLDER [NAME ...]

Each library is a source distribution from before August 2024. `conformance suite run` imports each
of its modules and runs some of its own tests on both releases, as `conformance upgrade --suite`
does at its ends. An ImportError, an AttributeError or a TypeError of the newer release alone that
jax raises, or that is about a name of jax, is a break, at the innermost line of the library. As an
import that fails hides what comes after it, all of this is done again after `scan --fix --write`.

Recall is the part of these lines where scan has a hit. Precision is the part of hits "removed" and
"signature" that are true: the name exists in the older release and not in the newer one, or the
call fits the older signature and not the newer. Half an hour; `--folder` keeps sources and results.
"""

from __future__ import annotations

import argparse
import ast
import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from common import fetch_sources

from conformance.app.scan.changes import list_files, scan
from conformance.app.scan.fixes import add_fixes, write_fixes
from conformance.cells.interpreters import find_interpreter
from conformance.engine.cache.blobs import BlobStore
from conformance.model.traceback import FRAMES, Traceback
from conformance.scan.hits import HitKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.scan.result import FileHit, ScanResult
    from conformance.scan.signatures import CallShape

BROKEN = {"AttributeError", "ImportError", "ModuleNotFoundError", "TypeError"}
ARGUMENTS = ("argument", "positional", "keyword", "parameter")
"""Words of a TypeError about the arguments of a call."""
MODULES_FILE = "test_modules.py"
TIMEOUT = 900
"""Seconds of a library; its tests so far count."""
MODULES_TEST = """\
import importlib

import pytest


@pytest.mark.parametrize("name", {modules})
def test_import(name):
    importlib.import_module(name)
"""
LOOK = """\
import importlib, inspect, json, sys, warnings
warnings.simplefilter("ignore")
for name in ("jax.experimental.pallas.tpu", "jax.experimental.pallas.triton"):
    try: importlib.import_module(name)
    except Exception: pass

def find(name):
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try: found = importlib.import_module(".".join(parts[:end]))
        except ImportError: continue
        for part in parts[end:]:
            found = getattr(found, part)
        return found
    raise ImportError(name)

def works(name, kind, call):
    try: found = find(name)
    except (AttributeError, ImportError): return False
    if kind == "removed": return True
    try: signature = inspect.signature(found)
    except (TypeError, ValueError): return None
    if call["more"]: bind = signature.bind_partial
    else: bind = signature.bind
    try: bind(*[None] * call["positions"], **dict.fromkeys(call["keywords"]))
    except TypeError: return False
    return True

print(json.dumps([works(*one) for one in json.load(sys.stdin)]))
"""


class Library(NamedTuple):
    """A library.

    Attributes:
        version: Its release.
        tests: Files and folders of its tests.
        requires: Packages that it needs and does not require.
    """

    version: str
    tests: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()


LIBRARIES = {
    "chex": Library("0.1.86", ("chex/_src",)),
    "optax": Library("0.2.3", ("optax/losses", "optax/tree_utils", "optax/schedules")),
    "distrax": Library("0.1.5", ("distrax/_src/utils",)),
    "rlax": Library("0.1.6", ("rlax/_src",), ("dm-haiku",)),
    "dm-haiku": Library("0.0.12", ("haiku/_src/stateful_test.py", "haiku/_src/basic_test.py")),
    "dm-pix": Library("0.4.3", ("dm_pix/_src",)),
    "mctx": Library("0.0.5", ("mctx",)),
    "jraph": Library("0.0.6.dev0", ("jraph/_src",), ("frozendict", "dm-haiku")),
    "brax": Library("0.10.5", ("brax/math_test.py", "brax/envs/env_test.py")),
    "evosax": Library("0.1.6", ("tests",)),
    "e3nn-jax": Library("0.20.6"),
    "dynamax": Library("0.1.4", ("dynamax/hidden_markov_model",)),
    "kfac-jax": Library("0.0.6", ("tests/test_graph_matcher.py",)),
    "jax-md": Library("0.2.8"),
    "flowjax": Library("13.0.1", ("tests/test_train",)),
    "numpyro": Library("0.15.2", ("test/test_compile.py", "test/test_control_flow.py")),
    "blackjax": Library("1.2.2", ("tests/mcmc",)),
    "oryx": Library("0.2.7", ("oryx/core",)),
    "neural-tangents": Library("0.6.5", ("tests/stax/linear_test.py",)),
    "tinygp": Library("0.3.0", ("tests",)),
    "pgx": Library("2.1.2", ("tests/test_tic_tac_toe.py",)),
    "jaxns": Library("2.5.3", ("jaxns/internals",)),
    "rax": Library("0.3.0", ("rax",)),
    "haliax": Library("1.3", ("tests",)),
    "jaxlie": Library("1.4.1", ("tests",)),
    "interpax": Library("0.3.3", ("tests",)),
    "fedjax": Library("0.0.17", ("fedjax/core",)),
    "coix": Library("0.1.0", ("coix",)),
    "equinox": Library("0.11.4"),
    "diffrax": Library("0.6.0"),
    "ott-jax": Library("0.4.7"),
    "objax": Library("1.8.0"),
    "treex": Library("0.6.12"),
    "jaxopt": Library("0.8.3"),
    "efax": Library("1.16.2"),
    "scico": Library("0.0.5.post1", ("scico/test/optimize",)),
    "aqtp": Library("0.7.5", ("aqt/jax/v2/numerics",)),
    "orbax-checkpoint": Library("0.5.23"),
    "flax": Library("0.8.5", ("tests/core", "tests/nnx")),
    "cola-ml": Library("0.0.5", ("tests",)),
    "jaxampler": Library("0.0.7", ("tests",)),
    "coax": Library("0.1.13"),
    "jax-unirep": Library("2.2.0"),
    "gymnax": Library("0.0.8"),
}


def fetch(name: str, library: Library, folder: Path) -> Path:
    """Return the folder of the sources of a library, with a test that imports each module."""
    target = folder / name
    kept = [one for one in target.glob("*") if one.is_dir() and one.name != "fixed"]
    root = kept[0] if kept else fetch_sources(name, library.version, target)
    source = root / "src" if (root / "src").is_dir() else root
    modules = [
        ".".join(file.relative_to(source).with_suffix("").parts).removesuffix(".__init__")
        for file in sorted(source.rglob("*.py"))
        if _is_module(file.relative_to(source).parts, source)
    ]
    (root / MODULES_FILE).write_text(MODULES_TEST.format(modules=modules), encoding="utf-8")
    return root


def _is_module(parts: tuple[str, ...], source: Path) -> bool:
    """Say whether a file is a module of the package, not a test, an example or a script."""
    if len(parts) == 1 or {"tests", "test", "docs", "examples", "benchmarks"} & {*parts}:
        return False
    if any(word in parts[-1] for word in ("test", "conftest", "__main__")):
        return False
    folders = [source.joinpath(*parts[: number + 1]) for number in range(len(parts) - 1)]
    return all((one / "__init__.py").exists() for one in folders)


def run_suite(root: Path, library: Library, cells: Sequence[str]) -> list[dict[str, Any]]:
    """Return the results of the tests on releases, each with its traceback."""
    stored = root.parent / f"results-{len(cells)}.json"
    if stored.exists():
        known: list[dict[str, Any]] = json.loads(stored.read_text(encoding="utf-8"))
        return known
    tests = [MODULES_FILE, *(one for one in library.tests if (root / one).exists())]
    extra = [part for one in (".", *library.requires) for part in ("--with", one)]
    cell_options = [part for one in cells for part in ("--cell", one)]
    command = [
        sys.executable, "-m", "conformance", "suite", "run", *tests, *extra, *cell_options,
        "--timeout", "60", "--no-report",
    ]  # fmt: skip
    try:
        ended = subprocess.run(
            command, check=False, capture_output=True, text=True, cwd=root, timeout=TIMEOUT
        )
        output = ended.stdout + ended.stderr
    except subprocess.TimeoutExpired as error:
        output = str(error.stdout) + "timed out"
    stored.with_suffix(".txt").write_text(output, encoding="utf-8")
    if "results in " not in output:
        return []
    folder = Path(output.rpartition("results in ")[2].split("\n")[0].strip())
    blobs = BlobStore(folder / "blobs")
    results: list[dict[str, Any]] = []
    for line in (folder / "results.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        frames = record["artifacts"].get(FRAMES)
        record["chain"] = json.loads(blobs.get(frames)) if frames else []
        results.append(record)
    stored.write_text(json.dumps(results), encoding="utf-8")
    return results


class Break(NamedTuple):
    """A line of a library that the newer release of jax breaks."""

    file: Path
    line: int
    error: str


def find_breaks(results: list[dict[str, Any]], root: Path, cells: tuple[str, str]) -> set[Break]:
    """Return the breaks of the tests that work on the older release alone."""
    files = list(list_files([root]))
    outcomes = {(one["case"], one["cell"].startswith(f"jax{cells[0]}-")): one for one in results}
    found = set()
    for (case, is_old), record in outcomes.items():
        before = outcomes.get((case, True))
        if is_old or record["outcome"] == "ok" or before is None or before["outcome"] != "ok":
            continue
        for raised in msgspec.convert(record["chain"], Traceback)[:1]:
            if raised.type not in BROKEN:
                continue
            if raised.type == "TypeError" and not any(one in raised.message for one in ARGUMENTS):
                continue
            frames = [one for one in raised.frames if one.file and one.library != "python"]
            places = [(number, _find_file(one.file, files)) for number, one in enumerate(frames)]
            known = [(number, file) for number, file in places if file is not None]
            if not known:
                continue
            number, file = known[-1]
            after = frames[number + 1 :]
            if file.name == MODULES_FILE or any(one.library != "jax" for one in after):
                continue
            found.add(Break(file, frames[number].line, f"{raised.type}: {raised.message[:110]}"))
    return found


def _find_file(name: str, files: list[Path]) -> Path | None:
    """Return the file of the sources that a frame is in."""
    parts = Path(name).parts
    best = [
        (number, file)
        for file in files
        if (number := _count_common(parts, file.parts)) >= min(2, len(parts))
    ]
    return max(best, default=(0, None))[1] if best else None


def _count_common(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    """Return the number of equal parts at the ends of two paths."""
    count = 0
    for left, right in zip(reversed(one), reversed(other), strict=False):
        if left != right:
            break
        count += 1
    return count


def list_lines(one: Break) -> range:
    """Return the lines of the simple statement that a break is in."""
    tree = ast.parse(one.file.read_bytes())
    best = range(one.line, one.line + 1)
    sizes = [
        range(node.lineno, (node.end_lineno or node.lineno) + 1)
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and not hasattr(node, "body")
        and node.lineno <= one.line <= (node.end_lineno or 0)
    ]  # fmt: skip
    return min(sizes, key=len, default=best)


def find_missed(breaks: set[Break], scanned: ScanResult) -> list[Break]:
    """Return the breaks whose lines have no hit that is loud."""
    lines = {(one.file, one.line) for one in scanned.hits if one.hit.is_loud}
    return [one for one in breaks if not any((one.file, n) in lines for n in list_lines(one))]


def fix_copy(root: Path, cells: tuple[str, str]) -> Path:
    """Return a copy of sources in which `scan --fix` has made its changes."""
    copy = root.parent / "fixed" / root.name
    if not copy.exists():
        shutil.copytree(root, copy)
        result = scan([copy], *cells)
        add_fixes(result)
        write_fixes(result.fixes)
    return copy


def look_up(release: str, python: str, folder: Path, asked: list[Any]) -> list[bool | None]:
    """Say what of names and calls works on a release, None where that is unknown."""
    environment = folder / f"jax-{release}"
    if not environment.exists():
        interpreter = find_interpreter(python)
        subprocess.run(["uv", "venv", "-q", "--python", interpreter, environment], check=True)
        subprocess.run(
            ["uv", "pip", "install", "-q", "--python", environment / "bin" / "python",
             f"jax=={release}"], check=True,
        )  # fmt: skip
    ended = subprocess.run(
        [environment / "bin" / "python", "-c", LOOK], check=True, capture_output=True,
        input=json.dumps(asked), text=True,
    )  # fmt: skip
    answers: list[bool | None] = json.loads(ended.stdout.splitlines()[-1])
    return answers


def compare_breaks(
    root: Path, library: Library, results: list[dict[str, Any]], scanned: ScanResult
) -> tuple[set[Break], list[Break]]:
    """Return the breaks before and after `scan --fix`, and those of them that scan misses."""
    cells = (scanned.old, scanned.new)
    breaks = find_breaks(results, root, cells)
    missed = find_missed(breaks, scanned)
    fixed = fix_copy(root, cells)
    before = [one for one in results if one["cell"].startswith(f"jax{cells[0]}-")]
    after = find_breaks([*before, *run_suite(fixed, library, cells[1:])], fixed, cells)
    seen = {(one.file.relative_to(root), one.error) for one in breaks}
    more = {one for one in after if (one.file.relative_to(fixed), one.error) not in seen}
    return breaks | more, missed + find_missed(more, scan([fixed], *cells))


def judge_hits(scanned: ScanResult, folder: Path) -> tuple[int, list[FileHit], int]:
    """Return the number of hits about names and calls, the false ones, the number of unknown."""
    calls = {
        (file, use.line, use.column): use.call
        for file, module in scanned.modules.items()
        for use in module.uses
    }
    hits = [
        one
        for one in scanned.hits
        if one.hit.kind in {HitKind.REMOVED, HitKind.SIGNATURE} and one.file.name != MODULES_FILE
    ]
    asked = [
        [one.hit.name, one.hit.kind, describe_call(calls.get((one.file, one.line, one.column)))]
        for one in hits
    ]
    was_there = look_up(scanned.old, "3.11", folder, asked)
    is_there = look_up(scanned.new, "3.12", folder, asked)
    judged = [
        # Of a call in a notebook the arguments are not known here.
        (one, None, None) if one.hit.kind is HitKind.SIGNATURE and one.cell else (one, was, now)
        for one, was, now in zip(hits, was_there, is_there, strict=True)
    ]
    false = [one for one, was, now in judged if was is False or now is True]
    return len(hits), false, sum(None in {was, now} for _, was, now in judged)


def describe_call(call: CallShape | None) -> dict[str, Any]:
    """Return the arguments of a call as `LOOK` reads them."""
    if call is None:
        return {"positions": 0, "keywords": [], "more": True}
    more = call.more_positions or call.more_keywords or call.partial
    return {"positions": call.positions, "keywords": [*call.keywords], "more": more}


def main() -> None:
    """Print each missed break, each false hit and a row for each library."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from", dest="old", default="0.4.30")
    parser.add_argument("--to", dest="new", default="0.12.0.1")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("names", nargs="*", metavar="NAME", default=[*LIBRARIES])
    options = parser.parse_args()
    cells = (options.old, options.new)
    totals: Counter[str] = Counter()
    for name in options.names:
        library = LIBRARIES[name]
        root = fetch(name, library, options.folder)
        results = run_suite(root, library, cells)
        scanned = scan([root], *cells)
        breaks, missed = compare_breaks(root, library, results, scanned)
        for one in sorted(missed):
            place = one.file.relative_to(options.folder)
            print(f"missed: {place}:{one.line}: {one.error}")
        hits, false, unknown = judge_hits(scanned, options.folder)
        for wrong in false:
            place = wrong.file.relative_to(options.folder)
            print(f"false: {place}:{wrong.line}: {wrong.hit.name}: {wrong.hit.text}")
        ran = Counter(one["cell"].partition("-")[0] for one in results if one["outcome"] == "ok")
        passed = ", ".join(str(ran[f"jax{cell}"]) for cell in cells)
        print(
            f"| {name} {library.version} | {passed} | {len(breaks) - len(missed)} of {len(breaks)} "
            f"| {hits - len(false)} of {hits} | {unknown} |",
            flush=True,
        )
        totals.update(
            ran=bool(results), breaks=len(breaks), found=len(breaks) - len(missed), hits=hits,
            true=hits - len(false), unknown=unknown,
        )  # fmt: skip
    print(dict(totals))


if __name__ == "__main__":
    main()
