"""Where a new case goes: family, topic, name; all of it checked before anything is tried."""

from __future__ import annotations

import ast
import keyword
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from conformance.corpus.discovery import discover, find_case_files
from conformance.corpus.project import FOR_CASES
from conformance.corpus.python_source import parse
from conformance.errors import UsageError
from conformance.files import describe_os_error
from conformance.triage.new.family import chosen, fits, guessed, uses

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.triage.new.family import Fit

TOPIC: Final = "reported"
"""The file that a case goes to where no other is named."""
_NAMED: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class CasePlace:
    """Where a case goes.

    Attributes:
        folder: Folder of its family.
        topic: Stem of its file.
        name: Its name.
        why: Why this family.
        there: What the file holds now; None where there is none yet.
        new_family: Whether the family is a new one.
        is_own: Whether the folder of cases is another one than the project's.
    """

    folder: Path
    topic: str
    name: str
    why: str
    there: str | None
    new_family: bool
    is_own: bool = False

    @property
    def target(self) -> str:
        """What `conformance run` calls it: its id, or its file where that is not the project's."""
        return str(self.file) if self.is_own else self.id

    @property
    def file(self) -> Path:
        """The file."""
        return self.folder / f"{self.topic}.py"

    @property
    def id(self) -> str:
        """Id of the case."""
        return f"{self.folder.name}/{self.name}"


def find_place(
    cases: Path, tree: ast.AST, *, stem: str, family: str, topic: str, name: str
) -> CasePlace:
    """Return where a case of a script goes.

    Args:
        cases: Folder of the families.
        tree: The script.
        stem: What the script is called.
        family: Family that is asked for; empty for the one that fits.
        topic: Topic that is asked for.
        name: Name that is asked for; empty for that of the script.

    Raises:
        UsageError: If no family fits, a name is none or taken, or a file cannot be read.
    """
    families = sorted(path.name for path in _folders(cases))
    why = "asked for"
    if family:
        _check("--family", family)
    else:
        family, why = _fitting(cases, tree, families)
    topic = _check("--topic", topic or TOPIC)
    if topic == "conftest" or topic.startswith("_"):
        raise UsageError(
            f"--topic {topic}: no file of cases has such a name, expected e.g. {TOPIC}"
        )
    name = _check("--name", name) if name else named_after(stem)
    folder = cases / family
    _refuse_taken(folder, name)
    return CasePlace(
        folder=folder, topic=topic, name=name, why=why,
        there=_read(folder / f"{topic}.py", name), new_family=family not in families,
    )  # fmt: skip


def named_after(stem: str) -> str:
    """Return the name of a case that is called after its script.

    Raises:
        UsageError: If nothing of the script's name can be one.
    """
    word = re.sub(r"\W+", "_", stem.lower(), flags=re.ASCII).strip("_")
    word = re.sub(r"^(?=\d)", "issue_", word)
    if not word.isidentifier() or keyword.iskeyword(word):
        raise UsageError(f"{stem!r} makes no name of a case, expected one: say --name NAME")
    return word


def _folders(cases: Path) -> list[Path]:
    if not cases.exists():
        return []  # a new folder
    found = (path for path in cases.iterdir() if path.is_dir())
    return [path for path in found if not path.name.startswith((".", "_"))]


def _fitting(cases: Path, tree: ast.AST, families: list[str]) -> tuple[str, str]:
    """Return the family of a script, and why that one.

    A script that uses nothing but `jax.numpy` is compared by the functions it takes from there.
    """
    if not families:
        raise UsageError(f"{cases}: has no families yet; name one: --family NAME")
    found = _fits(cases, tree, families, numbers=False)
    if (fit := chosen(found)) is not None:
        return fit.family, fit.reason
    fit = guessed(found) or guessed(_fits(cases, tree, families, numbers=True), enough=0)
    if fit is not None:
        return fit.family, f"a guess, for {fit.reason}; --family names another"
    near = [one for one in found[:_NAMED] if one.names]
    told = "; ".join(f"{one.family}: {one.reason}" for one in near) or ", ".join(families)
    raise UsageError(
        f"no family fits for sure ({told}); say --family NAME, one of these or a new one"
    )


def _fits(cases: Path, tree: ast.AST, families: list[str], *, numbers: bool) -> list[Fit]:
    used = {family: _uses_of(cases / family, numbers=numbers) for family in families}
    return fits(uses(tree, numbers=numbers), {name: files for name, files in used.items() if files})


def _uses_of(folder: Path, *, numbers: bool) -> list[frozenset[str]]:
    """Return what each file of a family uses, with what its helpers use for it."""
    helpers = [uses_in(file, numbers=numbers) for file in folder.glob("_*.py")]
    return [uses_in(file, numbers=numbers).union(*helpers) for file in find_case_files(folder)]


def uses_in(file: Path, *, numbers: bool = False) -> frozenset[str]:
    """Return what a case file uses, itself and by functions of the kit; nothing if it is broken.

    Args:
        file: The file.
        numbers: Whether functions of `jax.numpy` count, too.
    """
    try:
        tree = parse(file.read_bytes())
    except (OSError, SyntaxError):
        return frozenset()
    froms = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    kit = (uses_in(FOR_CASES[one], numbers=numbers) for one in froms & FOR_CASES.keys())
    return uses(tree, numbers=numbers).union(*kit)


def _check(option: str, text: str) -> str:
    if not text.isidentifier() or not text.isascii() or keyword.iskeyword(text):
        near = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_")
        hint = f", e.g. {near}" if near.isidentifier() else ""
        raise UsageError(f"{option} {text}: expected a Python name{hint}")
    return text


def _refuse_taken(folder: Path, name: str) -> None:
    if not folder.is_dir():
        return
    for case in discover(find_case_files(folder)):
        if case.name == name:
            raise UsageError(
                f"{folder.name}/{name} is taken, by {case.file}:{case.line}; say --name OTHER"
            )


def _read(file: Path, name: str) -> str | None:
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        said = describe_os_error(error) if isinstance(error, OSError) else "no text"
        raise UsageError(f"{file}: cannot be read: {said}") from None
    for node in parse(text).body:
        if getattr(node, "name", "") == name:
            raise UsageError(f"{file}: has a {name} already; say --name OTHER")
    return text
