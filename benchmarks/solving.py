"""Compares `conformance solve` with a resolver that knows declared requirements alone.

    python benchmarks/solving.py [--folder FOLDER] [NUMBER ...]

Each of 20 questions is answered by `conformance solve` and by `uv pip install`. Both answers are
installed in environments of their own, and the programs of the libraries run there. Prints a row
for each question; `--folder` keeps the answers. Half an hour.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from common import checkout_context

from conformance.app.ecosystem.run import load_ecosystem
from conformance.app.ecosystem.sources import LibrarySources
from conformance.cells.interpreters import find_interpreter
from conformance.cells.selectors import find_python, resolve_selector


class Question(NamedTuple):
    """Libraries, and the admitted releases of jax."""

    libraries: str
    jax: str


QUESTIONS = (
    Question("flax optax numpyro", ">=0.8,<0.13"),
    Question("flax optax orbax-checkpoint chex", "latest"),
    Question("flax optax", "0.8.1"),
    Question("flax optax", "0.6.2"),
    Question("equinox diffrax optimistix lineax", "latest"),
    Question("equinox diffrax", "0.6.2"),
    Question("dm-haiku optax rlax", ">=0.10"),
    Question("distrax optax", ">=0.8"),
    Question("dynamax", "0.8.1"),
    Question("dynamax", ">=0.6"),
    Question("bayeux-ml", ">=0.5"),
    Question("tensorflow-probability", ">=0.6"),
    Question("oryx", ">=0.4.35"),
    Question("kfac-jax optax", ">=0.8"),
    Question("quax equinox", ">=0.5,<0.11"),
    Question("gpjax", ">=0.8"),
    Question("brax flax", ">=0.6.2"),
    Question("netket optax", "latest"),
    Question("blackjax numpyro", "0.10.2"),
    Question("jax-md e3nn-jax", ">=0.6"),
)


class Answer(NamedTuple):
    """An answer, and what became of it.

    Attributes:
        versions: Versions of jax and the libraries.
        outcome: `ok`, or why the set does not work.
    """

    versions: str
    outcome: str


def try_answer(question: Question, requirements: list[str], folder: Path, python: Path) -> Answer:
    """Install requirements, and run the programs of the libraries."""
    folder.mkdir(parents=True, exist_ok=True)
    interpreter = folder / "environment" / "bin" / "python"
    subprocess.run(["uv", "venv", "-q", "--clear", "--python", python, interpreter.parents[1]],
                   check=True)  # fmt: skip
    install: list[str | Path] = [
        "uv",
        "pip",
        "install",
        "-q",
        "--python",
        interpreter,
        "--only-binary",
        ":all:",
    ]
    installed = subprocess.run(
        [*install, *requirements], check=False, capture_output=True, text=True
    )
    if installed.returncode:
        return Answer("", f"cannot be installed: {installed.stderr.strip().splitlines()[-1][:100]}")
    known = json.loads(subprocess.run(
        ["uv", "pip", "list", "--python", interpreter, "--format", "json"],
        check=True, capture_output=True, text=True,
    ).stdout)  # fmt: skip
    names = {"jax", *question.libraries.split()}
    versions = ", ".join(f"{one['name']} {one['version']}" for one in known if one["name"] in names)
    context = checkout_context()
    libraries = load_ecosystem(context, question.libraries.split())
    extra = sorted({one for library in libraries for one in library.requires})
    # What only the programs need comes with the versions that are there.
    pins = [f"{one['name']}=={one['version']}" for one in known]
    tools = subprocess.run(
        [*install, "pytest", *extra, *pins], check=False, capture_output=True, text=True
    )
    if tools.returncode:
        return Answer(versions, "what the programs require does not fit")
    sources = LibrarySources(context.cache)
    for library in libraries:
        program = sources.write_program(library)
        ran = subprocess.run(
            [interpreter, "-m", "pytest", "-q", "-p", "no:cacheprovider", program],
            check=False, capture_output=True, text=True, cwd=folder,
        )  # fmt: skip
        if ran.returncode:
            errors = [one for one in ran.stdout.splitlines() if one.startswith("E  ")]
            return Answer(versions, f"{library.name}: {errors[-1].strip('E ')[:100]}")
    return Answer(versions, "ok")


def ask(question: Question, folder: Path) -> list[str]:
    """Return the constraints of `conformance solve`, none if it finds no set."""
    stored = folder / "constraints.txt"
    folder.mkdir(parents=True, exist_ok=True)
    if not stored.exists():
        ended = subprocess.run(
            [sys.executable, "-m", "conformance", "solve", *question.libraries.split(),
             "--jax", question.jax], check=False, capture_output=True, text=True,
        )  # fmt: skip
        (folder / "notes.txt").write_text(ended.stderr, encoding="utf-8")
        if ended.returncode:
            return []
        stored.write_text(ended.stdout, encoding="utf-8")
    lines = stored.read_text(encoding="utf-8").splitlines()
    return [one for one in lines if one and not one.startswith("#")]


def main() -> None:
    """Print a row for each question."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("numbers", nargs="*", type=int, metavar="NUMBER")
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="solving-"))
    context = checkout_context()
    print("| libraries | jax | solve | installed and run | resolver | installed and run |")
    print("|---|---|---|---|---|---|")
    for number, question in enumerate(QUESTIONS):
        if options.numbers and number not in options.numbers:
            continue
        own = folder / str(number)
        constraints = ask(question, own)
        admitted = resolve_selector(question.jax, context.releases)
        pinned = [one for one in constraints if one.startswith("jax==")]
        release = pinned[0].removeprefix("jax==") if pinned else admitted[-1]
        solved = Answer("none", "")
        if constraints:
            python = find_interpreter(find_python(release, context.releases))
            solved = try_answer(question, constraints, own, python)
        python = find_interpreter(find_python(admitted[-1], context.releases))
        wanted = f"jax>={admitted[0]},<={admitted[-1]}"
        plain = try_answer(question, [wanted, *question.libraries.split()], own, python)
        shutil.rmtree(own / "environment")
        cells = [
            question.libraries, f"`{question.jax}`", solved.versions, solved.outcome,
            plain.versions, plain.outcome,
        ]  # fmt: skip
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
