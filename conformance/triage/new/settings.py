"""What a script sets before it does anything: flags, options of jax, devices. Pure."""

from __future__ import annotations

import ast
import contextlib
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from conformance.triage.new.source import called, dotted

if TYPE_CHECKING:
    from collections.abc import Mapping

DEVICE_COUNT: Final = "--xla_force_host_platform_device_count"
_LATE: Final = "jax_num_cpu_devices"
_PLACES: Final = frozenset({"jax_platforms", "jax_platform_name"})
"""Options that a cell decides."""
_X64: Final = "jax_enable_x64"
_ENVIRON: Final = "os.environ"
_READS: Final = frozenset({f"{_ENVIRON}.get", "os.getenv"})
_BOOLEANS: Final = {
    "true": True, "yes": True, "on": True, "1": True,
    "false": False, "no": False, "off": False, "0": False,
}  # fmt: skip


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
            number_or_text = int(value) if value.isdigit() else value
            self.set_option(name.lower(), _BOOLEANS.get(value.lower(), number_or_text))
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


def read_settings(
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
    reader = _Reader(names, found)
    for node in tree.body:
        if reader.sets(node):
            found.statements.append(node)
        elif not reader.is_quiet(node):
            break
    return found


class _Reader:
    """Reads statements in their order, and keeps the plain values that they name."""

    def __init__(self, names: Mapping[str, str], found: Settings) -> None:
        self._names, self._found = names, found
        self._values: dict[str, Any] = {}

    def is_quiet(self, node: ast.stmt) -> bool:
        """Say whether a statement does nothing yet; keep the plain value that it names."""
        match node:
            case ast.Assign(targets=[ast.Name(id=name), *_], value=value):
                with contextlib.suppress(ValueError, TypeError):
                    self._values[name] = ast.literal_eval(value)
                    return True
                return False
            case ast.Import() | ast.ImportFrom() | ast.FunctionDef() | ast.ClassDef():
                return True
            case _:
                return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)

    def sets(self, node: ast.stmt) -> bool:
        """Take in a statement that sets something; return whether it does."""
        match node:
            case ast.Assign(targets=[target, *_]) | ast.AugAssign(target=target):
                return self._assigns(target, self._value(node.value))
            case ast.Expr(value=ast.Call() as call):
                return self._calls(call)
            case _:
                return False

    def _assigns(self, target: ast.expr, value: object) -> bool:
        """Take in `os.environ[NAME] = VALUE`, or `jax.config.NAME = VALUE`."""
        path = dotted(target, self._names)
        match target, value:
            case ast.Subscript(value=base, slice=ast.Constant(value=str(name))), str(text) if (
                dotted(base, self._names) == _ENVIRON
            ):
                self._found.set_variable(name, text)
            case _ if path.startswith("jax.config.jax_") and value is not None:
                self._found.set_option(path.rpartition(".")[2], value)
            case _:
                return False
        return True

    def _calls(self, call: ast.Call) -> bool:
        """Take in a call that sets variables, or an option of jax."""
        match called(call, self._names), [*map(self._value, call.args)]:
            case (("os.environ.setdefault" | "os.putenv"), [str(name), str(value)]):
                self._found.set_variable(name, value)
            case "os.environ.update", [dict(variables), *_]:
                for name, value in variables.items():
                    self._found.set_variable(name, value)
            case (("jax.config.update" | "jax.config.config.update"), [str(name), value]) if (
                value is not None
            ):
                self._found.set_option(name, value)
            case _:
                return False
        return True

    def _value(self, node: ast.expr) -> Any:
        """Return the value of a plain expression, None where it has none that can be read."""
        found: Any = None
        match node:
            case ast.Name(id=name):
                found = self._values.get(name)
            case ast.JoinedStr(values=parts):
                values = [*map(self._value, parts)]
                found = None if None in values else "".join(map(str, values))
            case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
                found = self._value(value)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                both = [self._value(left), self._value(right)]
                found = "".join(both) if all(isinstance(one, str) for one in both) else None
            case ast.Call(args=[_, ast.Constant(value=str(default))]) if (
                called(node, self._names) in _READS
            ):
                found = default
            case ast.Call(func=ast.Name(id="str"), args=[argument]):
                value = self._value(argument)
                found = None if value is None else str(value)
            case _:
                with contextlib.suppress(ValueError, TypeError):
                    found = ast.literal_eval(node)
        return found


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()
