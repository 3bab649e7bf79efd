"""Find the commands that texts propose, and parse them as the command line does."""

from __future__ import annotations

import ast
import html
import re
import shlex
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from conformance.cells.releases import Releases, load_releases
from conformance.cells.selectors import select_cells, split_platform
from conformance.cli import cli
from conformance.cli.commands import COMMANDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT: Final = Path(__file__).resolve().parents[1]
STAND_IN: Final = "0.6.2"
"""Replacement for the interpolated names, paths and releases of a message."""
_NAMES: Final = "|".join(COMMANDS)
_LINE: Final = re.compile(rf"^[ >$*-]*(conformance (?:{_NAMES})\b.*)$", re.MULTILINE)
_QUOTED: Final = re.compile(rf"(?<!`)`(conformance (?:{_NAMES})(?: [^`]*)?)`")
_AT_THE_END: Final = re.compile(
    rf"(?:: |with |again: |or )(conformance (?:{_NAMES}) (?=[-'A-Z0-9/<{{]|\w+ [-<{{'])[^`;]*?)"
    r"(?=;|$|\. |, or )",
    re.MULTILINE,
)
_COMMENT: Final = re.compile(r"\s{2,}\S.*$")
_SHELL: Final = frozenset("|<>&;")
_HOLE: Final = re.compile(r"[A-Z][A-Z_]*|\.\.\.")
"""A placeholder that the reader replaces."""


def find_in_text(text: str) -> set[str]:
    """Return the commands that a text proposes: whole lines, in backticks, after a colon."""
    joined = re.sub(r"\\\n\s*", "", text)
    return {
        found.strip().rstrip(".")
        for pattern in (_LINE, _QUOTED, _AT_THE_END)
        for found in pattern.findall(joined)
        if not _is_name(found)
    }


def _is_name(text: str) -> bool:
    """Say whether a text only names a command."""
    words = text.strip().rstrip(".").split()[1:]
    return len(words) == 1 or (words[0] in {"suite", "history"} and len(words) == 2)


def find_in_markdown(text: str) -> set[str]:
    """Return the commands of the blocks of code and the backticks of a document."""
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return set().union(*map(find_in_text, blocks)) | {
        found for found in _QUOTED.findall(text) if not _is_name(found)
    }


def find_in_page(content: bytes) -> set[str]:
    """Return the commands of an HTML page, each the whole text of an element."""
    found = re.findall(rf">(conformance (?:{_NAMES})\b[^<]*)<", content.decode())
    return {html.unescape(text).strip() for text in found}


def find_in_json(data: Any) -> set[str]:
    """Return the commands among the texts of JSON."""
    if isinstance(data, str):
        return find_in_text(data)
    inner = (
        data.values() if isinstance(data, dict) else data if isinstance(data, list | tuple) else ()
    )
    return set().union(*map(find_in_json, inner))


def find_in_source(file: Path) -> set[str]:
    """Return the commands that the messages of a module propose, with stand-ins in them."""
    tree = ast.parse(file.read_text("utf-8"))
    docs = {
        node.body[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    parts = {
        part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr | ast.Constant) and node not in docs | parts:
            found |= find_in_text(_text(node))
    return found


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    text = ""
    for part in node.values if isinstance(node, ast.JoinedStr) else ():
        # What follows a word without a space is more options, or nothing.
        hole = "" if text[-1:].isalnum() else STAND_IN
        text += _text(part) if isinstance(part, ast.Constant) else hole
    return text


def find_in_help() -> Iterator[tuple[str, str]]:
    """Yield the commands that the help of each command shows, with the command's name."""
    for name, command in walk_commands(cli, "conformance"):
        context = click.Context(command, info_name=name, max_content_width=200)
        yield from (
            (name, _COMMENT.sub("", one)) for one in find_in_text(command.get_help(context))
        )


def walk_commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """Yield a command and those below it, each with its name."""
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for inner in command.list_commands(context):
            found = command.get_command(context, inner)
            assert found is not None
            yield from walk_commands(found, f"{name} {inner}")


def split_command(command: str) -> list[str]:
    """Return the words of a command, up to where a shell would take over."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|<>&;")
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    for word in lexer:
        if word.startswith("#") or (word and set(word) <= _SHELL):
            break
        words.append("4" if word == "N" else word)
    return words


def parse_command(command: str) -> click.Context:
    """Parse a command as the command line does, without running it; its cells are selected.

    Raises:
        ClickException: If the command line rejects it.
        ConformanceError: If the selector of a cell is invalid.
    """
    words = split_command(command)
    assert words.pop(0) == "conformance"
    context: click.Context = click.Context(cli, info_name="conformance")
    parsed: click.Command = cli
    while isinstance(parsed, click.Group):
        name, found, words = parsed.resolve_command(context, words)
        assert found is not None
        parsed = found
        if not isinstance(parsed, click.Group):
            break
        context = click.Context(parsed, info_name=name, parent=context)
    try:
        context = parsed.make_context(parsed.name, [*words], parent=context)
    except click.BadParameter as error:
        # Directories that an example names are not here.
        if "does not exist" not in error.format_message():
            raise
        return context
    for text in _cells(context.params):
        _check_cell(text)
    return context


def _cells(params: dict[str, Any]) -> Iterable[str]:
    # `none` is no cell for `shrink`; on another axis the ends are no releases.
    on_jax = params.get("axis", "jax") in {None, "", "jax"} and params.get("good") != "none"
    ends = ("good", "bad") if on_jax else ()
    for name in (*ends, "cell", "cells", "before", "after"):
        given = params.get(name)
        given = (given,) if isinstance(given, str) else given
        yield from filter(None, given if isinstance(given, tuple) else ())


def _check_cell(text: str) -> None:
    if _HOLE.fullmatch(text) or text.endswith((".txt", ".toml", ".lock")):
        return
    selector, _ = split_platform(text)
    if not selector.startswith("path:") and "nightly" not in selector:
        assert select_cells(text, _releases())


@cache
def _releases() -> Releases:
    return load_releases(ROOT / "matrix" / "releases.toml")
