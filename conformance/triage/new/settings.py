"""Settings at the top of a script: environment variables, flags, options of jax. Pure."""

from __future__ import annotations

import ast
import contextlib
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from conformance.triage.new.script_source import resolve_callee, resolve_path
from conformance.triage.programs.report_facts import DEVICE_COUNT_FLAG

if TYPE_CHECKING:
    from collections.abc import Mapping

_DEVICE_COUNT_OPTION: Final = "jax_num_cpu_devices"
_CELL_OPTIONS: Final = frozenset({"jax_platforms", "jax_platform_name"})
"""Options that the cell decides."""
_X64: Final = "jax_enable_x64"
_ENVIRON: Final = "os.environ"
_READS: Final = frozenset({f"{_ENVIRON}.get", "os.getenv"})
# Spellings that jax accepts in environment variables.
_BOOLEANS: Final = {
    "true": True, "yes": True, "on": True, "1": True,
    "false": False, "no": False, "off": False, "0": False,
}  # fmt: skip


@dataclass(slots=True)
class ScriptSettings:
    """Settings for the whole of a case.

    Attributes:
        devices: The number of devices it needs.
        xla_flags: Flags of XLA.
        config: Options of jax.
        x64: Whether 64-bit types are on.
        dropped: Variables and options that a cell decides, or that have no effect in a cell.
        statements: The statements of the script that make these settings.
    """

    devices: int = 1
    xla_flags: list[str] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)
    x64: bool = False
    dropped: list[str] = field(default_factory=list)
    statements: list[ast.stmt] = field(default_factory=list)

    def set_variable(self, name: str, value: str) -> None:
        """Add an environment variable."""
        if name == "XLA_FLAGS":
            for flag in _split_words(value):
                key, _, number = flag.partition("=")
                if key == DEVICE_COUNT_FLAG and number.isdigit():
                    self.devices = int(number)
                else:
                    self.xla_flags.append(flag)
        # jax reads each option also from the variable of its name in upper case.
        elif name.startswith("JAX_"):
            number_or_text = int(value) if value.isdigit() else value
            self.set_option(name.lower(), _BOOLEANS.get(value.lower(), number_or_text))
        else:
            self.dropped.append(name)

    def set_option(self, name: str, value: object) -> None:
        """Add an option of jax."""
        # The case has to run on any platform that its cells have.
        if name in _CELL_OPTIONS:
            self.dropped.append(name)
        elif name == _DEVICE_COUNT_OPTION and isinstance(value, int):
            self.devices = value
        elif name == _X64:
            self.x64 = bool(value)
        else:
            self.config[name] = value


def read_settings(
    tree: ast.Module, names: Mapping[str, str], variables: Mapping[str, str]
) -> ScriptSettings:
    """Return the settings that a script makes at its top, before it does anything.

    Settings made later, or with computed values, stay in the script: they are part of its behavior.

    Args:
        tree: The script.
        names: Dotted path of each imported name.
        variables: Environment variables that it was run with.
    """
    settings = ScriptSettings()
    reader = _SettingsReader(names, variables)
    for node in tree.body:
        # Functions and constants may precede settings: neither initializes a backend.
        if reader.read_statement(node):
            settings.statements.append(node)
        elif not reader.is_inert(node):
            break
    for name, value in reader.variables.items():
        settings.set_variable(name, value)
    # An option that is set has its variable's value no more.
    for name, option in reader.options:
        settings.set_option(name, option)
    return settings


class _SettingsReader:
    """Reads statements in their order, and remembers the values of constants.

    Args:
        names: Dotted path of each imported name.
        variables: Environment variables at the start.

    Attributes:
        variables: Environment variables after the statements so far.
        options: Options of jax that were set, in their order.
    """

    def __init__(self, names: Mapping[str, str], variables: Mapping[str, str]) -> None:
        self.variables = dict(variables)
        self.options: list[tuple[str, object]] = []
        self._names = names
        self._constants: dict[str, Any] = {}

    def is_inert(self, node: ast.stmt) -> bool:
        """Return whether a statement does nothing yet; remember the constant that it assigns."""
        match node:
            # A computed value may initialize a backend; later settings then are part of the
            # behavior.
            case ast.Assign(targets=[ast.Name(id=name), *_], value=value):
                with contextlib.suppress(ValueError, TypeError):
                    self._constants[name] = ast.literal_eval(value)
                    return True
                return False
            case ast.Import() | ast.ImportFrom() | ast.FunctionDef() | ast.ClassDef():
                return True
            case _:
                return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)

    def read_statement(self, node: ast.stmt) -> bool:
        """Add the setting that a statement makes; return whether it makes one."""
        match node:
            case ast.Assign(targets=[target, *_]):
                return self._read_assignment(target, self._evaluate(node.value))
            case ast.AugAssign(target=target, op=ast.Add(), value=value):
                # `+=` of a variable; an option has no sum.
                longer = ast.BinOp(left=target, op=node.op, right=value)
                return self._read_assignment(target, self._evaluate(longer))
            case ast.Expr(value=ast.Call() as call):
                return self._read_call(call)
            case _:
                return False

    def _read_assignment(self, target: ast.expr, value: object) -> bool:
        """Read `os.environ[NAME] = VALUE` or `jax.config.NAME = VALUE`."""
        path = resolve_path(target, self._names)
        match target, value:
            case ast.Subscript(value=base, slice=ast.Constant(value=str(name))), str(text) if (
                resolve_path(base, self._names) == _ENVIRON
            ):
                self.variables[name] = text
            # None is an unknown value: the statement then stays in the case.
            case _ if path.startswith("jax.config.jax_") and value is not None:
                self.options.append((path.rpartition(".")[2], value))
            case _:
                return False
        return True

    def _read_call(self, call: ast.Call) -> bool:
        """Read a call that sets variables, or an option of jax."""
        match resolve_callee(call, self._names), [*map(self._evaluate, call.args)]:
            case "os.environ.setdefault", [str(name), str(value)]:
                self.variables.setdefault(name, value)
            case "os.putenv", [str(name), str(value)]:
                self.variables[name] = value
            case "os.environ.update", [dict(variables), *_]:
                self.variables |= variables
            case (("jax.config.update" | "jax.config.config.update"), [str(name), value]) if (
                value is not None
            ):
                self.options.append((name, value))
            case _:
                return False
        return True

    def _evaluate(self, node: ast.expr) -> Any:
        """Return the value of a constant expression, None for any other."""
        value: Any = None
        match node:
            case ast.Name(id=name):
                value = self._constants.get(name)
            case ast.JoinedStr(values=parts):
                values = [*map(self._evaluate, parts)]
                value = None if None in values else "".join(map(str, values))
            case ast.FormattedValue(value=inner, conversion=-1, format_spec=None):
                value = self._evaluate(inner)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                sides = [self._evaluate(left), self._evaluate(right)]
                value = "".join(sides) if all(isinstance(side, str) for side in sides) else None
            case ast.Call(
                args=[ast.Constant(value=str(name)), ast.Constant(value=str(default))]
            ) if resolve_callee(node, self._names) in _READS:
                # A cell has none of the user's other variables, so that the default counts.
                value = self.variables.get(name, default)
            case ast.Subscript(value=base, slice=ast.Constant(value=str(name))) if (
                resolve_path(base, self._names) == _ENVIRON
            ):
                value = self.variables.get(name)
            case ast.Call(func=ast.Name(id="str"), args=[argument]):
                inner_value = self._evaluate(argument)
                value = None if inner_value is None else str(inner_value)
            case _:
                # `literal_eval` raises ValueError for a call, TypeError for an unhashable key.
                with contextlib.suppress(ValueError, TypeError):
                    value = ast.literal_eval(node)
        return value


def _split_words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # a quote that is not closed
        return text.split()
