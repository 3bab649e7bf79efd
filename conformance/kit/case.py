"""The vocabulary of a case file: `program`, `probe`, `deviation`, `budget`, `Program` and others.

The decorators only mark functions: their keywords are read from the source, with `ast`, by the
orchestrator, which never imports a case. So every keyword must be a literal.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from conformance.kit.strategies import Strategy

F = TypeVar("F", bound="Callable[..., Any]")

MARK = "__conformance_case__"
GIVEN = "__conformance_given__"
"""Attribute of the function of a case with its strategies by parameter."""


class CaseError(Exception):
    """The case itself is wrong: it captured nothing, or its reference cannot be computed."""


class Unsupported(Exception):  # noqa: N818 - an outcome, not an error
    """Raised by `env.unsupported`: the cell cannot express this case; outcome `unsupported`."""


@dataclass(frozen=True)
class Raises:
    """A reference for conforming behaviour that is an error; made by `raises`."""

    type: str
    match: str = ""


def raises(type: str, match: str = "") -> Raises:  # noqa: A002 - reads as in pytest
    """Return a reference for a program that must raise.

    Args:
        type: Exception type name as it prints, e.g. `TypeError`; alternatives joined by `|`.
        match: Regular expression searched in the message.

    Returns:
        The `reference` of a `Program` or of `Observed`.
    """
    return Raises(type, match)


@dataclass(frozen=True)
class Program:
    """A staged function with its arguments: traced, lowered, compiled, executed by the harness.

    Attributes:
        fn: Function to stage; a jitted function is used unchanged.
        args: Positional arguments, any pytrees of arrays.
        kwargs: Keyword arguments.
        reference: Expected result by independent means: a pytree, a callable of the arguments as
            NumPy arrays, or `raises(...)`; None for no reference.
        jit: Keywords for `jax.jit`, e.g. `{"donate_argnums": 0, "static_argnums": 1}`.
    """

    fn: Callable[..., Any]
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    reference: Any = None
    jit: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Observed:
    """The observation of a probe, with its reference.

    Attributes:
        value: Any pytree; Python scalars and strings are compared exactly.
        reference: As for `Program`, except that a callable has no arguments.
        artifacts: Further artifacts by name: texts, and as `stablehlo` a lowered program, whose
            text is stored like that of a program case.
    """

    value: Any
    reference: Any = None
    artifacts: Mapping[str, Any] = field(default_factory=dict)


class Declaration:
    """A declared deviation or budget. Discovery reads it from the source text."""


def deviation(
    releases: str = "",
    *,
    outcome: str = "raised",
    error: str = "",
    match: str = "",
    platform: str = "",
    packages: dict[str, str] | None = None,
    params: Sequence[str] = (),
    reason: str = "",
    issue: str = "",
) -> Declaration:
    """Declare a non-conformance, within `deviations=[...]` or as a constant named there.

    It is read statically: the arguments are literals or constants of the file.

    Args:
        releases: jax releases that show it, as a specifier with or without the name:
            `jax<0.6`, `>=0.5.1,<0.6`; empty is all.
        outcome: `raised`, `crashed`, `timed_out`, `out_of_memory`, or `ok` if it runs and
            its value deviates from the reference.
        error: Exception type name, for `raised`.
        match: Regular expression searched in the message.
        platform: Platform that shows it; empty is all.
        packages: Specifiers of further packages, e.g. `{"flax": ">=0.10.7"}`.
        params: Names of the parametrisations that show it; empty is all.
        reason: Reason in a few words.
        issue: Upstream thread, `owner/repo#N`.
    """
    # The arguments are dropped: discovery has read them from the source.
    return Declaration()


def budget(
    platform: str,
    ulp: int,
    *,
    reason: str,
    leaves: Sequence[str | int] = (),
    params: Sequence[str] = (),
    source: str = "",
) -> Declaration:
    """Declare how far from its reference a value may be, within `budgets=[...]` or as a constant.

    It is read statically: the arguments are literals or constants of the file.

    Args:
        platform: Platform to which it applies, as in `platforms`.
        ulp: Units in the last place of the dtype observed; 0 is correctly rounded.
        reason: Origin of the error in a few words.
        leaves: Keys of a returned dictionary, or positions in a tuple, to which it applies; empty
            is all leaves without an earlier budget.
        params: Names of the parametrisations to which it applies; empty is all.
        source: Thread, commit or document with evidence.
    """
    return Declaration()


def defaults(
    *,
    source: str = "",
    devices: int = 1,
    platforms: Sequence[str] = (),
    requires: Sequence[str] = (),
    releases: str = "",
    deviations: Sequence[Declaration] = (),
    facts: dict[str, Any] | None = None,
    policy: dict[str, str] | None = None,
    x64: bool = False,
    timeout: float = 60.0,
    memory: int = 4096,
    observation_mb: int = 256,
    xla_flags: Sequence[str] = (),
    config: dict[str, Any] | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    budgets: Sequence[Declaration] = (),
    same_as: Sequence[str] = (),
) -> None:
    """Set keywords for all cases of the file, at its top level.

    A decorator that gives a keyword replaces the default. Read statically, at most once in a file.
    The keywords are those of `program`; `facts`, `policy` and `same_as` apply to programs alone.
    """


# Keywords are spelled out in each decorator, so that editors complete them and a misspelled one
# fails.
def program(
    *,
    source: str = "",
    params: dict[str, dict[str, Any]] | Sequence[str] | None = None,
    given: Mapping[str, Strategy] | None = None,
    examples: int = 20,
    sizes: Sequence[int] = (),
    devices: int = 1,
    platforms: Sequence[str] = (),
    requires: Sequence[str] = (),
    releases: str = "",
    deviations: Sequence[Declaration] = (),
    facts: dict[str, Any] | None = None,
    policy: dict[str, str] | None = None,
    x64: bool = False,
    timeout: float = 60.0,
    memory: int = 4096,
    observation_mb: int = 256,
    xla_flags: Sequence[str] = (),
    config: dict[str, Any] | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    budgets: Sequence[Declaration] = (),
    same_as: Sequence[str] = (),
) -> Callable[[F], F]:
    """Mark a function as a program case; it takes `env` and returns a `Program`.

    Args:
        source: Upstream thread or document the case comes from.
        params: Keyword arguments by parameter name: one case `family/name[key]` for each. A list
            of names passes each name to the one parameter of the function besides `env`;
            `[*TABLE]` has the keys of a dictionary of the file.
        given: Strategies of `conformance.kit.strategies` by parameter of the function. The program
            is built for each example that Hypothesis draws, and its reference and `same_as` must
            hold for all. Its value and IRs are those of the simplest example.
        examples: Examples to draw; the same ones on every release, Python and host.
        sizes: Sizes, at least three, ascending: the parameter `size` of the function. A run has
            the first; `conformance bench` has all, and finds how time grows with them.
        devices: Devices the case needs; a cell with fewer excludes it.
        platforms: Platforms it runs on; empty is all.
        requires: Packages the cell must have, as names or specifiers (`flax>=0.10`).
        releases: jax releases it applies to, a specifier; empty is all.
        deviations: Declared non-conformances, `deviation(...)` each.
        facts: Claims on the optimised HLO, e.g. `{"collectives": {"all-reduce": 1}}`. The claim
            `filecheck` matches patterns in the way of LLVM's FileCheck, a check a line:
            `{"filecheck": {"hlo": "CHECK: all-reduce"}}`, also for `stablehlo` and `jaxpr`. They
            are matched in what `conformance diff CASE --cell CELL --ir hlo` prints, which holds
            over releases. A pattern for an IR that was not observed is not met.
        policy: Effect of a change of `facts`, `jaxpr`, `stablehlo`, `stablehlo-tpu`,
            `stablehlo-cuda`, `stablehlo-rocm` or `hlo` against the golden: `gate` (fails the run),
            `warn` or `inform`; by default facts gate, jaxpr and StableHLO warn, HLO informs.
        x64: Whether 64-bit types are enabled.
        timeout: Wall-clock limit, in seconds.
        memory: Limit of resident memory of all its processes together, in MiB.
        observation_mb: Limit of the observation of a job (values, references and artifacts
            together), in MiB; at most 1024.
        xla_flags: Flags added to XLA_FLAGS, with their dashes.
        config: `jax.config` values set before the case is built.
        rtol: Relative tolerance to the reference; default by dtype, 0 is exact.
        atol: Absolute tolerance to the reference; 0 by default.
        budgets: Tolerances to the reference in ULP by platform, `budget(...)` each; they take the
            place of `rtol` and `atol` there.
        same_as: Other ways to run it, in each of which it gives the same value within tolerance:
            `jit` (`jax.jit(fn)` called), `eager` (under `jax.disable_jit`), `aot` (compiled for
            shapes, dtypes and shardings alone), `vmap_of_one` (mapped over a leading axis of 1),
            `unsharded` (every mesh of `env.mesh` has one device).

    Returns:
        A decorator that returns the function unchanged.
    """
    return _marker("program", given)


def probe(
    *,
    source: str = "",
    params: dict[str, dict[str, Any]] | Sequence[str] | None = None,
    given: Mapping[str, Strategy] | None = None,
    examples: int = 20,
    sizes: Sequence[int] = (),
    devices: int = 1,
    platforms: Sequence[str] = (),
    requires: Sequence[str] = (),
    releases: str = "",
    deviations: Sequence[Declaration] = (),
    x64: bool = False,
    timeout: float = 60.0,
    memory: int = 4096,
    observation_mb: int = 256,
    xla_flags: Sequence[str] = (),
    config: dict[str, Any] | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    budgets: Sequence[Declaration] = (),
    records: str = "",
) -> Callable[[F], F]:
    """Mark a function as a probe case; it takes `env` and returns a pytree or `Observed`.

    The keywords are those of `program` without `facts`, `policy` and `same_as`. With `given`, the
    function is called with each example; it raises if its law does not hold, e.g. by a check of
    `conformance.kit.laws`, or returns `Observed` with a reference. `records` states
    why the probe has no reference; `conformance list` and the case's page show it.

    Returns:
        A decorator that returns the function unchanged.
    """
    return _marker("probe", given)


def _marker(kind: str, given: Mapping[str, Strategy] | None) -> Callable[[F], F]:
    def mark(fn: F) -> F:
        setattr(fn, MARK, kind)
        setattr(fn, GIVEN, given)
        return fn

    return mark
