"""The place of a new case: family, topic and name, all checked before any trial."""

from __future__ import annotations

import ast
import keyword
import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from conformance.corpus.discovery import discover, find_case_files
from conformance.corpus.project import FOR_CASES
from conformance.corpus.python_source import parse
from conformance.errors import UsageError
from conformance.files import describe_os_error
from conformance.triage.new.family import (
    UsedNames,
    choose_family,
    collect_used_names,
    guess_family,
    rank_families,
)
from conformance.triage.new.script_source import find_imports

if TYPE_CHECKING:
    from pathlib import Path

DEFAULT_TOPIC: Final = "reported"
"""The file of a case if no other is named."""
_LISTED_FAMILIES: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class CasePlacement:
    """The place of a case.

    Attributes:
        folder: Folder of its family.
        topic: Stem of its file.
        name: Its name.
        why: The reason for this family.
        content: The present content of the file; None if it does not exist.
        is_external: Whether the folder of cases is outside the project.
    """

    folder: Path
    topic: str
    name: str
    why: str
    content: str | None
    is_external: bool = False

    @property
    def target(self) -> str:
        """The case as an argument of `conformance run`: its id, or its file outside the project."""
        return str(self.file) if self.is_external else self.id

    @property
    def file(self) -> Path:
        """The file."""
        return self.folder / f"{self.topic}.py"

    @property
    def id(self) -> str:
        """Id of the case."""
        return f"{self.folder.name}/{self.name}"


def find_placement(
    cases: Path, tree: ast.AST, *, stem: str, family: str, topic: str, name: str
) -> CasePlacement:
    """Return the place of the case of a script.

    Args:
        cases: Folder of the families.
        tree: The script.
        stem: Stem of the file of the script.
        family: The requested family; empty for the best match.
        topic: The requested topic; empty for the default.
        name: The requested name; empty for that of the script.

    Raises:
        UsageError: If no family matches, a name is invalid or taken, or a file cannot be read.
    """
    why = "asked for"
    if family:
        _check_identifier("--family", family)
    else:
        family, why = _match_family(cases, tree)
    topic = _check_identifier("--topic", topic or DEFAULT_TOPIC)
    # Discovery skips such files.
    if topic == "conftest" or topic.startswith("_"):
        raise UsageError(
            f"--topic {topic}: no case file may have this name, expected e.g. {DEFAULT_TOPIC}"
        )
    name = _check_identifier("--name", name) if name else make_case_name(stem)
    folder = cases / family
    # Names are unique within a family, not only within a file.
    for case in discover(find_case_files(folder)) if folder.is_dir() else ():
        if case.name == name:
            raise UsageError(
                f"{folder.name}/{name} is taken, by {case.file}:{case.line}; use --name OTHER"
            )
    # Read before any trial, so that a file that cannot be read costs none.
    content = _read_topic(folder / f"{topic}.py", name)
    return CasePlacement(folder=folder, topic=topic, name=name, why=why, content=content)


def make_case_name(stem: str) -> str:
    """Return the name of a case from the name of its script.

    Args:
        stem: Stem of the file of the script.

    Raises:
        UsageError: If it contains no letters or digits.
    """
    word = re.sub(r"\W+", "_", stem.lower(), flags=re.ASCII).strip("_")
    # Reports are often saved under the number of their issue.
    word = re.sub(r"^(?=\d)", "issue_", word)
    if not word.isidentifier() or keyword.iskeyword(word):
        raise UsageError(f"{stem!r} makes no name for a case: name it with --name NAME")
    return word


def _match_family(cases: Path, tree: ast.AST) -> tuple[str, str]:
    """Return the family of a script, and the reason for it."""
    folders = cases.iterdir() if cases.exists() else ()
    found = (path for path in folders if path.is_dir() and not path.name.startswith((".", "_")))
    families = sorted(path.name for path in found)
    if not families:
        raise UsageError(f"{cases}: has no families yet; name one: --family NAME")
    script, used = collect_used_names(tree), _read_families(cases, families)
    typical = {name: [file.typical for file in files] for name, files in used.items()}
    ranked = rank_families(script.typical, typical)
    if (match := choose_family(ranked)) is not None:
        return match.family, match.reason
    # Nearly every script uses `jax.numpy`, so its names decide only if there are no others; then
    # any that is shared is a hint.
    every = {name: [file.every for file in files] for name, files in used.items()}
    match = guess_family(ranked) or guess_family(rank_families(script.every, every), threshold=0)
    if match is not None:
        return match.family, f"a guess, for {match.reason}; --family names another"
    nearest = [match for match in ranked[:_LISTED_FAMILIES] if match.names]
    listed = "; ".join(f"{match.family}: {match.reason}" for match in nearest)
    raise UsageError(
        f"no family matches ({listed or ', '.join(families)}); name one of these or a new one "
        "with --family NAME"
    )


def _read_families(cases: Path, families: list[str]) -> dict[str, list[UsedNames]]:
    """Return the names that each file of each family uses, with those of its helpers."""
    used = {}
    for family in set(families) - ABOUT_TIME:
        # A case uses the functions of its helpers without naming what these use.
        helpers = [read_used_names(file) for file in (cases / family).glob("_*.py")]
        if files := find_case_files(cases / family):
            used[family] = [read_used_names(file).union(*helpers) for file in files]
    return used


ABOUT_TIME: Final = frozenset({"performance"})
"""Families that use a part of every other: no script is placed there without being told."""
OF_ANY_FAMILY: Final = frozenset({"conformance.kit.laws", "conformance.kit.tolerances"})
"""Modules of the kit that say nothing about the subject of a case."""


def read_used_names(file: Path) -> UsedNames:
    """Return the names that a case file uses, also by functions of the kit; none if it is broken.

    Args:
        file: The file.
    """
    try:
        tree = parse(file.read_bytes())
    # A broken file must not prevent a case in another family.
    except (OSError, SyntaxError):
        return UsedNames()
    imports = find_imports(tree)
    modules = {node.module for node in imports if isinstance(node, ast.ImportFrom)}
    kit = map(_read_kit_names, modules & FOR_CASES.keys() - OF_ANY_FAMILY)
    return collect_used_names(tree).union(*kit)


@cache
def _read_kit_names(module: str) -> UsedNames:
    return read_used_names(FOR_CASES[module])


def _check_identifier(option: str, text: str) -> str:
    if not text.isidentifier() or not text.isascii() or keyword.iskeyword(text):
        near = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_")
        hint = f", e.g. {near}" if near.isidentifier() else ""
        raise UsageError(f"{option} {text}: expected a Python name{hint}")
    return text


def _read_topic(file: Path, name: str) -> str | None:
    """Return the content of the file of a topic, None if it does not exist."""
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        reason = describe_os_error(error) if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(f"{file}: cannot be read: {reason}") from None
    # Helpers and classes count, too: discovery only finds cases.
    if any(getattr(node, "name", "") == name for node in parse(text).body):
        raise UsageError(f"{file}: defines {name} already; use --name OTHER")
    return text
