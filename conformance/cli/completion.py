"""Shell completion of subcommands without importing their modules.

Importing a subcommand takes up to two seconds, too long for the press of a key. So the parameters
of each subcommand are stored in the cache when it is first completed.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from conformance import __version__
from conformance.cache_folder import cache_root
from conformance.cli.words import KINDS
from conformance.corpus.project import PACKAGE
from conformance.errors import ConformanceError
from conformance.files import write_atomically

if TYPE_CHECKING:
    from pathlib import Path

FOLDER: Final = "completion"


class CompletionEntry(msgspec.Struct, kw_only=True):
    """The description of a parameter, or of a command with its parameters.

    Attributes:
        name: Name of the parameter or the command.
        help: Its help, in one line.
        options: Spellings of an option, empty for an argument.
        flag: Whether the option has no value.
        multiple: Whether the option is repeatable.
        count: Number of words of a value, -1 for any number.
        kind: Kind of the words: one of `KINDS`, `file`, or empty.
        choices: The valid words, empty for any.
        params: Parameters of a command.
        commands: Subcommands of a group.
    """

    name: str = ""
    help: str = ""
    options: list[str] = []
    flag: bool = False
    multiple: bool = False
    count: int = 1
    kind: str = ""
    choices: list[str] = []
    params: list[CompletionEntry] = []
    commands: list[CompletionEntry] = []


def load_completion(name: str, module: str) -> click.Command:
    """Return a subcommand that completes like the real one, and does nothing else.

    Args:
        name: Name of the subcommand.
        module: Module of the real subcommand.
    """
    file = _find_file(name)
    found = None
    # A file that is missing or damaged costs one import, and is written again.
    with contextlib.suppress(OSError, msgspec.MsgspecError):
        found = msgspec.json.decode(file.read_bytes(), type=CompletionEntry) if file else None
    if found is None:
        found = describe_command(importlib.import_module(module).command)
        if file is not None:
            with contextlib.suppress(OSError, ConformanceError):
                # Without a writable cache each key is slow, but is answered.
                write_atomically(file, msgspec.json.encode(found))
    return restore_command(found)


def _find_file(name: str) -> Path | None:
    """Return the file with the description of a subcommand, None without a cache."""
    try:
        files = sorted((PACKAGE / "cli").glob("*.py"))
        states = [(file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in files]
        digest = hashlib.sha256(repr((__version__, states)).encode()).hexdigest()[:16]
        return cache_root() / FOLDER / f"{digest}-{name}.json"
    except (OSError, ConformanceError):
        return None


def describe_command(command: click.Command) -> CompletionEntry:
    """Return the description of a command.

    Args:
        command: The command to describe.
    """
    inner: list[CompletionEntry] = []
    if isinstance(command, click.Group):
        context = click.Context(command)
        found = (command.get_command(context, name) for name in command.list_commands(context))
        inner = [describe_command(one) for one in found if one is not None]
    return CompletionEntry(
        name=command.name or "",
        help=command.get_short_help_str(),
        params=[_describe_param(param) for param in command.params],
        commands=inner,
    )


def _describe_param(param: click.Parameter) -> CompletionEntry:
    kind = "file" if isinstance(param.type, click.Path) else param.type.name
    choices = list(map(str, param.type.choices)) if isinstance(param.type, click.Choice) else []
    return CompletionEntry(
        name=param.name or "",
        help=(getattr(param, "help", "") or "").partition(". ")[0],
        options=[*param.opts, *param.secondary_opts] if isinstance(param, click.Option) else [],
        flag=isinstance(param, click.Option) and (param.is_flag or param.count),
        multiple=bool(getattr(param, "multiple", False)),
        count=param.nargs,
        kind=kind if kind in {*KINDS, "file"} else "",
        choices=choices,
    )


def restore_command(entry: CompletionEntry) -> click.Command:
    """Return a command that completes as described.

    Args:
        entry: The description.
    """
    params = [_restore_param(param) for param in entry.params]
    if not entry.commands:
        return click.Command(entry.name, params=params, short_help=entry.help)
    commands = {one.name: restore_command(one) for one in entry.commands}
    return click.Group(entry.name, commands, params=params, short_help=entry.help)


def _restore_param(param: CompletionEntry) -> click.Parameter:
    type_: Any = KINDS.get(param.kind)
    if param.choices:
        type_ = click.Choice(param.choices)
    elif param.kind == "file":
        type_ = click.Path()
    if not param.options:
        return click.Argument([param.name], type=type_, nargs=param.count, required=False)
    if param.flag:
        return click.Option([param.name, *param.options], is_flag=True, help=param.help)
    return click.Option(
        [param.name, *param.options], type=type_, multiple=param.multiple, nargs=param.count,
        help=param.help,
    )  # fmt: skip
