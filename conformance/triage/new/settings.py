"""What a script sets before it does anything: flags, options of jax, devices. Pure."""

from __future__ import annotations

import ast
import contextlib
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from conformance.triage.new.names import called, dotted

if TYPE_CHECKING:
    from collections.abc import Mapping

DEVICE_COUNT: Final = "--xla_force_host_platform_device_count"
_LATE: Final = "jax_num_cpu_devices"
_PLACES: Final = frozenset({"jax_platforms", "jax_platform_name"})
"""Options that a cell decides."""
_X64: Final = "jax_enable_x64"
_ENVIRON: Final = "os.environ"
_READS: Final = frozenset({f"{_ENVIRON}.get", "os.getenv"})
_TRUE, _FALSE = frozenset({"1", "true", "yes", "on"}), frozenset({"0", "false", "no", "off"})


@dataclass(slots=True)
class Settings:
    """What holds for the whole of a case.

    Attributes:
        devices: How many devices it needs.
        xla_flags: Flags of XLA.
        config: Options of jax.
        x64: Whether 64-bit types are on.
        dropped: Variables and options that a cell decides, or that do nothing there.
        statements: The statements of the script that set all this.
    """

    devices: int = 1
    xla_flags: list[str] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)
    x64: bool = False
    dropped: list[str] = field(default_factory=list)
    statements: list[ast.stmt] = field(default_factory=list)

    def set_variable(self, name: str, value: str) -> None:
        """Take in an environment variable."""
        if name == "XLA_FLAGS":
            for flag in _words(value):
                key, _, number = flag.partition("=")
                if key == DEVICE_COUNT and number.isdigit():
                    self.devices = int(number)
                else:
                    self.xla_flags.append(flag)
        elif name.startswith("JAX_"):
            self.set_option(name.lower(), _read(value))
        else:
            self.dropped.append(name)

    def set_option(self, name: str, value: object) -> None:
        """Take in an option of jax."""
        if name in _PLACES:
            self.dropped.append(name)
        elif name == _LATE and isinstance(value, int):
            self.devices = value
        elif name == _X64:
            self.x64 = bool(value)
        else:
            self.config[name] = value


def settings_of(
    tree: ast.Module, names: Mapping[str, str], variables: Mapping[str, str]
) -> Settings:
    """Return what a script sets at its top, before it does anything.

    What is set later, or not by plain values, stays where it is.

    Args:
        tree: The script.
        names: What imported names stand for.
        variables: Environment variables that it was run with.
    """
    found = Settings()
    for name, value in variables.items():
        found.set_variable(name, value)
    values: dict[str, Any] = {}
    for node in tree.body:
        if _is_setting(node, names, values, found):
            found.statements.append(node)
        elif not _is_quiet(node, values):
            break
    return found


def _is_quiet(node: ast.stmt, values: dict[str, Any]) -> bool:
    """Say whether a statement does nothing yet; take in the plain values that it names."""
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        try:
            values[node.targets[0].id] = ast.literal_eval(node.value)
        except (ValueError, TypeError):
            return False
        return True
    kinds = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return isinstance(node, kinds) or is_text


def _is_setting(
    node: ast.stmt, names: Mapping[str, str], values: Mapping[str, Any], found: Settings
) -> bool:
    """Take in a statement that sets something; return whether it does."""
    if isinstance(node, ast.Assign | ast.AugAssign):
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        return _is_assignment(target, _value(node.value, names, values), names, found)
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return False
    call = node.value
    given = [_value(argument, names, values) for argument in call.args]
    target_name = called(call, names)
    if len(given) == 2 and isinstance(given[0], str) and given[1] is not None:  # noqa: PLR2004 - name and value
        if target_name in {f"{_ENVIRON}.setdefault", "os.putenv"} and isinstance(given[1], str):
            found.set_variable(given[0], given[1])
            return True
        if target_name in {"jax.config.update", "jax.config.config.update"}:
            found.set_option(given[0], given[1])
            return True
    if target_name == f"{_ENVIRON}.update" and call.args and isinstance(given[0], dict):
        for name, value in given[0].items():
            found.set_variable(name, value)
        return True
    return False


def _is_assignment(
    target: ast.expr, value: object, names: Mapping[str, str], found: Settings
) -> bool:
    """Take in `os.environ[NAME] = VALUE`, or `jax.config.NAME = VALUE`."""
    if value is None:
        return False
    if isinstance(target, ast.Subscript) and dotted(target.value, names) == _ENVIRON:
        name = target.slice.value if isinstance(target.slice, ast.Constant) else None
        if isinstance(name, str) and isinstance(value, str):
            found.set_variable(name, value)
            return True
    path = dotted(target, names)
    if path.startswith("jax.config.jax_"):
        found.set_option(path.rpartition(".")[2], value)
        return True
    return False


def _value(node: ast.expr, names: Mapping[str, str], values: Mapping[str, Any]) -> Any:
    """Return the value of a plain expression, None where it has none that can be read."""

    def read(inner: ast.expr) -> Any:
        return _value(inner, names, values)

    found: Any = None
    match node:
        case ast.Name(id=name):
            found = values.get(name)
        case ast.JoinedStr(values=parts):
            said = [read(part) for part in parts]
            found = None if None in said else "".join(map(str, said))
        case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
            found = read(value)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            both = [read(left), read(right)]
            found = both[0] + both[1] if all(isinstance(one, str) for one in both) else None
        case ast.Call(args=[_, ast.Constant(value=str(default))]) if called(node, names) in _READS:
            found = default
        case ast.Call(func=ast.Name(id="str"), args=[argument]):
            inner = read(argument)
            found = None if inner is None else str(inner)
        case _:
            with contextlib.suppress(ValueError, TypeError):
                found = ast.literal_eval(node)
    return found


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _read(text: str) -> object:
    """Return what a variable says of an option."""
    if text.lower() in _TRUE | _FALSE and not text.isdigit():
        return text.lower() in _TRUE
    return bool(int(text)) if text in {"0", "1"} else int(text) if text.isdigit() else text
