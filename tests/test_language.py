"""Prose in plain technical English: no phrase that reads as translated."""

from __future__ import annotations

import ast
import importlib
import re
from typing import TYPE_CHECKING

import tomllib

from conformance.cli.commands import COMMANDS
from tests.projects import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TRANSLATED = re.compile(
    r"\b(told|said|tells|beside|anew|whatever|nobody|but for|of (the|its) day|others than|"
    r"lets? go of|comes to (it|them)|not there any more)\b",
    re.IGNORECASE,
)
"""Phrases for which English has a plainer one: reported, next to, again, any, no one, except."""

MARKUP = re.compile(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}|<[^>]*>", re.DOTALL)
"""Comments, statements, expressions and tags of a template."""

RENAMED_KEYS = "`told`, `instead` and `seen`"
"""Former keys of a file, which the changelog has to name."""


def _find_phrases(text: str) -> list[str]:
    return [
        text[max(0, match.start() - 40) : match.end() + 40].replace("\n", " ")
        for match in TRANSLATED.finditer(text.replace(RENAMED_KEYS, ""))
    ]


def _statements(node: ast.AST) -> list[ast.stmt]:
    body = getattr(node, "body", [])
    return body if isinstance(body, list) else []  # a lambda has an expression


def _strings(file: Path) -> Iterator[str]:
    """Yield the strings of a module that a user may read: no docstrings, no single words."""
    tree = ast.parse(file.read_bytes())
    docstrings = {
        id(statement.value)
        for node in ast.walk(tree)
        for statement in _statements(node)
        if isinstance(statement, ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
            if " " in text and id(node) not in docstrings:
                yield text


def test_pages_read_as_written() -> None:
    """README, documentation and changelog; the generated pages by what they are generated from."""
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *ROOT.glob("docs/*.md")]
    found = {page.name: _find_phrases(page.read_text(encoding="utf-8")) for page in pages}
    assert {page: phrases for page, phrases in found.items() if phrases} == {}


def test_lines_of_the_history_read_as_written() -> None:
    """Summaries, advice and reasons in `changes.toml`."""
    found = []
    for file in sorted(ROOT.glob("cases/*/changes.toml")):
        data = tomllib.loads(file.read_text(encoding="utf-8"))
        texts = [data.get("about", ""), data.get("about_pairs", "")]
        texts += [
            change.get(key, "")
            for change in data.get("change", ())
            for key in ("summary", "advice", "why")
        ]
        found += [phrase for text in texts for phrase in _find_phrases(text)]
    assert found == []


def test_messages_read_as_written() -> None:
    """Strings of the package with more than one word."""
    found = {
        str(file.relative_to(ROOT)): phrases
        for file in sorted(ROOT.glob("conformance/**/*.py"))
        if (phrases := [phrase for text in _strings(file) for phrase in _find_phrases(text)])
    }
    assert found == {}


def test_pages_of_the_site_read_as_written() -> None:
    """The text of templates, without tags and expressions."""
    found = {}
    for file in sorted(ROOT.glob("conformance/report/site/templates/*.html")):
        text = re.sub(
            r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}|<[^>]*>", " ", file.read_text(), flags=re.DOTALL
        )
        if phrases := _find_phrases(text):
            found[file.name] = phrases
    assert found == {}


def test_help_reads_as_written() -> None:
    """The text of each command and the help of its options."""
    found = {}
    for name, entry in COMMANDS.items():
        command = importlib.import_module(entry.module).command
        texts = [command.help or "", *(getattr(one, "help", "") or "" for one in command.params)]
        if phrases := [phrase for text in texts for phrase in _find_phrases(text)]:
            found[name] = phrases
    assert found == {}
