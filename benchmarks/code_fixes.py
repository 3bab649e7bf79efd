"""Runs the tests of libraries of 2024 on a new jax, before and after `conformance scan --fix`.

    python benchmarks/code_fixes.py [--jax 0.12.0.1] [--python 3.12] [--folder FOLDER] [NAME ...]

Each library is a source distribution whose own tests run from its folder, with the newest releases
of everything else. `--folder` keeps the environment and the sources. Takes a quarter of an hour.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

from common import fetch_sources

from conformance.app.scan.changes import scan
from conformance.app.scan.fixes import add_fixes, write_fixes
from conformance.scan.hits import HitKind

COMMON = (
    "pip",
    "pytest",
    "pytest-timeout",
    "pytest-xdist",
    "absl-py",
    "scipy",
    "toolz",
    "chex",
    "flax",
    "optax",
)
BROKEN = ("AttributeError", "ImportError", "ModuleNotFoundError", "TypeError")
LOUD = {HitKind.REMOVED, HitKind.SIGNATURE}


class Library(NamedTuple):
    """A library.

    Attributes:
        version: Its release.
        jax: The release of jax of its time.
        tests: What pytest gets.
        requires: Packages that the tests need.
    """

    version: str
    jax: str
    tests: tuple[str, ...]
    requires: tuple[str, ...] = ()


LIBRARIES = {
    "mctx": Library("0.0.5", "0.4.30", ("mctx",)),
    "rlax": Library("0.1.6", "0.4.30", ("rlax",), ("distrax", "dm-env", "dm-haiku")),
    "chex": Library("0.1.86", "0.4.30", ("chex",)),
    "jraph": Library("0.0.6.dev0", "0.4.30", ("jraph/_src",), ("dm-haiku", "frozendict")),
    "optax": Library("0.2.2", "0.4.30", ("optax/losses", "optax/tree_utils", "optax/contrib")),
}


def run(*command: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command, whose output is kept."""
    return subprocess.run(
        [*map(str, command)], check=False, capture_output=True, text=True, **options
    )


def test(python: Path, sources: Path, library: Library) -> Counter[str]:
    """Return the number of tests by outcome; a module that cannot be imported is one that failed.

    A test that fails by an AttributeError, ImportError or TypeError is counted as `broken`, too.
    """
    report = sources.parent / "report.xml"
    # Not the project's own checkout.
    environment = {**os.environ, "PYTHONPATH": str(sources), "JAX_PLATFORMS": "cpu"}
    run(
        python, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "--timeout", "120",
        "--continue-on-collection-errors", "--junitxml", report, *library.tests,
        cwd=sources, env=environment,
    )  # fmt: skip
    counts: Counter[str] = Counter()
    for one in ET.parse(report).getroot().iter("testcase"):  # noqa: S314 - pytest wrote it
        problems = [child for child in one if child.tag in {"error", "failure"}]
        skipped = one.find("skipped") is not None
        counts["failed" if problems else "skipped" if skipped else "passed"] += 1
        text = "".join(f"{child.get('message')}{child.text}" for child in problems)
        counts["broken"] += any(f"{kind}: " in text for kind in BROKEN)
    return counts


def main() -> None:
    """Print a row for each library."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jax", default="0.12.0.1")
    parser.add_argument("--python", default="3.12")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", default=[*LIBRARIES])
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="code-fixes-"))
    python = folder / "environment" / "bin" / "python"
    if not python.exists():
        run("uv", "venv", "--python", options.python, folder / "environment")
    print("| library | jax then | before: passed, failed (broken) | after | fixed | hits left |")
    print("|---|---|---|---|---|---|")
    for name in options.names:
        library = LIBRARIES[name]
        run(
            "uv", "pip", "install", "--python", python, f"jax=={options.jax}", *COMMON,
            *library.requires,
        )  # fmt: skip
        sources = fetch_sources(name, library.version, folder / name)
        before = test(python, sources, library)
        result = scan([sources], library.jax, options.jax)
        add_fixes(result)
        write_fixes(result.fixes)
        after = test(python, sources, library)
        places = sum(len(one.fixed) for one in result.fixes.values())
        left = Counter(
            one.hit.name
            for one in result.hits
            if one.hit.kind in LOUD and result.find_fix(one) is None
        )
        row = [
            f"{name} {library.version}", library.jax,
            *(f"{one['passed']}, {one['failed']} ({one['broken']})" for one in (before, after)),
            f"{places} in {len(result.fixes)} files",
            ", ".join(f"{number} {what}" for what, number in left.items()),
        ]  # fmt: skip
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
