"""Commands as far as a shell completes them, without importing what they do.

Importing a subcommand takes up to two seconds, which is long for a key that is pressed. So the
parameters of each are written down in the cache when it is completed first.
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


class Described(msgspec.Struct, kw_only=True):
    """A parameter, or a command with its parameters.

    Attributes:
        name: Its name.
        help: One line about it.
        options: Spellings of an option, empty for an argument.
        flag: Whether the option takes no value.
        several: Whether it may be given more than once.
        count: How many words it takes, -1 for any.
        kind: The kind of its words: one of `KINDS`, `file`, or empty.
        choices: The only words that it takes, empty for any.
        params: Parameters of a command.
        commands: Subcommands of a group.
    """

    name: str = ""
    help: str = ""
    options: list[str] = []
    flag: bool = False
    several: bool = False
    count: int = 1
    kind: str = ""
    choices: list[str] = []
    params: list[Described] = []
    commands: list[Described] = []


def load_completion(name: str, module: str) -> click.Command:
    """Return a subcommand that completes as the real one does, and does nothing.

    Args:
        name: Its name.
        module: The module of the real one.
    """
    file = _find_file(name)
    try:
        found = msgspec.json.decode(file.read_bytes(), type=Described) if file else None
    except (OSError, msgspec.MsgspecError):
        found = None
    if found is None:
        found = describe(importlib.import_module(module).command)
        if file is not None:
            with contextlib.suppress(OSError, ConformanceError):
                write_atomically(file, msgspec.json.encode(found))
    return restore(found)


def _find_file(name: str) -> Path | None:
    """Return where a subcommand is described, by the state of the files of the command line."""
    try:
        files = sorted((PACKAGE / "cli").glob("*.py"))
        states = [(file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in files]
        digest = hashlib.sha256(repr((__version__, states)).encode()).hexdigest()[:16]
        return cache_root() / FOLDER / f"{digest}-{name}.json"
    except (OSError, ConformanceError):
        return None


def describe(command: click.Command) -> Described:
    """Return what is written down of a command.

    Args:
        command: The command.
    """
    inner: list[Described] = []
    if isinstance(command, click.Group):
        context = click.Context(command)
        found = (command.get_command(context, name) for name in command.list_commands(context))
        inner = [describe(one) for one in found if one is not None]
    return Described(
        name=command.name or "",
        help=command.get_short_help_str(),
        params=[_describe_param(param) for param in command.params],
        commands=inner,
    )


def _describe_param(param: click.Parameter) -> Described:
    kind = "file" if isinstance(param.type, click.Path) else param.type.name
    choices = list(map(str, param.type.choices)) if isinstance(param.type, click.Choice) else []
    return Described(
        name=param.name or "",
        help=(getattr(param, "help", "") or "").partition(". ")[0],
        options=[*param.opts, *param.secondary_opts] if isinstance(param, click.Option) else [],
        flag=isinstance(param, click.Option) and (param.is_flag or param.count),
        several=bool(getattr(param, "multiple", False)),
        count=param.nargs,
        kind=kind if kind in {*KINDS, "file"} else "",
        choices=choices,
    )


def restore(found: Described) -> click.Command:
    """Return a command that completes as was written down.

    Args:
        found: What was written down.
    """
    params = [_restore_param(param) for param in found.params]
    if not found.commands:
        return click.Command(found.name, params=params, short_help=found.help)
    commands = {one.name: restore(one) for one in found.commands}
    return click.Group(found.name, commands, params=params, short_help=found.help)


def _restore_param(param: Described) -> click.Parameter:
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
        [param.name, *param.options], type=type_, multiple=param.several, nargs=param.count,
        help=param.help,
    )  # fmt: skip
