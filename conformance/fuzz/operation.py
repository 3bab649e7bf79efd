"""An operation of the table: its name, and the rule that draws a call of it."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from conformance.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from conformance.fuzz.scope import Scope

    Rule = Callable[[Scope, "Operation"], None]

FLOAT: Final = ("float",)
INTEGER: Final = ("int", "uint")
INEXACT: Final = ("float", "complex")
REAL: Final = ("float", "int", "uint")
NUMBER: Final = ("float", "int", "uint", "complex")
SINGLE: Final = ("float32", "float64")
ANY: Final = ("float", "int", "uint", "bool", "complex")


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation that programs are made of.

    Attributes:
        name: Name, e.g. `jnp.cumsum`; that of a method begins with a dot.
        call: The call with `{0}`, `{1}`, ... for operands, where the rule does not write it.
        rule: Adds a call of it to a scope.
        kinds: Kinds of dtypes that it takes, or dtypes.
        result: How the dtype of its result follows from its operands, as its rule defines it.
        twin: Name of the equal operation of NumPy, e.g. `np.cumsum`; empty for none.
        needs_axis: Whether it is a collective, which needs a named axis.
        narrow: Whether it takes dtypes of 4 and 8 bits, too.
        lacks: Modes in which it cannot be differentiated: `forward`, `reverse`.
    """

    name: str
    rule: Rule
    call: str = ""
    kinds: tuple[str, ...] = NUMBER
    result: str = "same"
    twin: str = ""
    needs_axis: bool = False
    narrow: bool = False
    lacks: tuple[str, ...] = ()


def make_operations(
    names: str,
    rule: Rule,
    kinds: tuple[str, ...] = NUMBER,
    *,
    call: str = "",
    result: str = "same",
    twin: bool = False,
    narrow: bool = False,
    lacks: tuple[str, ...] = (),
) -> tuple[Operation, ...]:
    """Return operations with the same rule.

    Args:
        names: Their names, separated by spaces.
        rule: See `Operation`.
        kinds: See `Operation`.
        call: See `Operation`; `{name}` stands for the name.
        result: See `Operation`.
        twin: Whether `np.X` is equal to `jnp.X`.
        narrow: See `Operation`.
        lacks: See `Operation`.
    """
    return tuple(
        Operation(
            name=name, rule=rule, call=call.replace("{name}", name), kinds=kinds, result=result,
            narrow=narrow, lacks=lacks, twin=name.replace("jnp.", "np.") if twin else "",
        )
        for name in names.split()
    )  # fmt: skip


def make_calls(
    calls: Sequence[str], rule: Rule, kinds: tuple[str, ...] = NUMBER, *, result: str = "same"
) -> tuple[Operation, ...]:
    """Return operations with the same rule, each with a call of its own.

    Args:
        calls: Calls with `{0}`, `{1}`, ... for the operands.
        rule: See `Operation`.
        kinds: See `Operation`.
        result: See `Operation`.
    """
    return tuple(
        Operation(
            name=call.partition("(")[0].removeprefix("{0}"), rule=rule, call=call, kinds=kinds,
            result=result,
        )
        for call in calls
    )  # fmt: skip


def select_operations(
    operations: Iterable[Operation], patterns: Sequence[str]
) -> tuple[Operation, ...]:
    """Return the operations whose names match at least one of some patterns.

    Args:
        operations: All operations.
        patterns: Shell patterns; empty selects all.

    Raises:
        UsageError: If a pattern matches none.
    """
    known = tuple(operations)
    if not patterns:
        return known
    for pattern in patterns:
        if not any(fnmatch.fnmatchcase(one.name, pattern) for one in known):
            raise UsageError(
                f"--ops {pattern}: matches none of {len(known)} operations; "
                "expected a name or a pattern, such as 'jnp.cum*' or 'lax.scan'"
            )
    return tuple(
        one for one in known if any(fnmatch.fnmatchcase(one.name, each) for each in patterns)
    )
