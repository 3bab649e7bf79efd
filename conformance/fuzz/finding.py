"""A finding of a campaign, and whether two of them have one cause. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from conformance.fuzz.comparison import Kind, is_similar
from conformance.fuzz.evaluation import NUMPY, RELEASE
from conformance.fuzz.launch import EXPLICIT
from conformance.model.outcome import Outcome

if TYPE_CHECKING:
    from conformance.fuzz.evaluation import Divergence
    from conformance.fuzz.program import FuzzProgram


WITH_MESH: Final = frozenset({"shard_map", "jit(shardings)", EXPLICIT})
"""Transforms and launches with a mesh."""


class ReleaseResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of a shrunk program on one release.

    Attributes:
        release: Version of jax.
        outcome: Outcome under `jit`; `unsupported` if the release lacks one of its operations.
        text: The result or the error under `jit`, in a line.
        other: The same in the mode that differs from `jit`, empty for other oracles.
        differs: Whether the release shows the finding: its result differs from that of the
            release before, or from that of the other oracle.
        right: Whether the result equals that of NumPy within the error bound; None if it is not
            known.
    """

    release: str
    outcome: str
    text: str
    other: str = ""
    differs: bool = False
    right: bool | None = None


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A difference that fuzzing discovered, shrunk and dated.

    Attributes:
        id: Hash of its root.
        oracle: Oracle that found it, see `conformance.fuzz.evaluation.Divergence`.
        kind: Kind of the difference, see `conformance.fuzz.comparison.Kind`.
        detail: The difference in a sentence.
        example: An example with numbers.
        operations: Operations of the shrunk program.
        transforms: Transforms of the shrunk program, the innermost first, and its launch.
        releases: Releases at which the result changes; for another oracle than `release` those
            that show the difference.
        results: Result of the shrunk program on each release, the oldest first; empty in logs of
            earlier versions.
        known: Case that shows the same change, empty for none.
        script: The shrunk program.
        twin: The shrunk program in NumPy as a function `reference`, empty if there is none.
        choices: Choices of Hypothesis for it, in hexadecimal.
        x64: Whether it runs with 64-bit types enabled.
        programs: Ids of the programs that showed it.
    """

    id: str
    oracle: str
    kind: str
    detail: str
    example: str
    operations: tuple[str, ...]
    transforms: tuple[str, ...]
    releases: tuple[str, ...] = ()
    results: tuple[ReleaseResult, ...] = ()
    known: str = ""
    script: str
    twin: str = ""
    choices: str
    x64: bool = False
    programs: tuple[str, ...] = ()

    @property
    def fixed_in(self) -> str:
        """The release that fixed it, empty for none.

        With the oracle `release`, the program failed on the oldest release that has its operations,
        and runs on the newest. With another oracle, no later release shows the finding.
        """
        shown = [number for number, one in enumerate(self.results) if one.differs]
        if not shown:
            return ""
        if self.oracle == RELEASE:
            tried = [one.outcome for one in self.results if one.outcome != Outcome.UNSUPPORTED]
            is_fixed = tried[0] != Outcome.OK and tried[-1] == Outcome.OK
            return self.results[shown[-1]].release if is_fixed else ""
        later = self.results[shown[-1] + 1 :]
        return later[0].release if later else ""

    @property
    def turning_points(self) -> frozenset[str]:
        """The releases in which it begins or ends, as far as the results show."""
        if self.oracle == RELEASE:
            return frozenset(self.releases)
        shown = [number for number, one in enumerate(self.results) if one.differs]
        first = {self.results[shown[0]].release} if shown and shown[0] else set()
        return frozenset(first | {self.fixed_in} - {""})

    @property
    def status(self) -> str:
        """`known: CASE`, `fixed since RELEASE`, or `new`."""
        if self.known:
            return f"known: {self.known}"
        return f"fixed since {self.fixed_in}" if self.fixed_in else "new"

    def covers(self, program: FuzzProgram, divergence: Divergence) -> bool:
        """Return whether a program most likely diverges for the reason of this finding.

        Args:
            program: A program that diverges.
            divergence: How it diverges.
        """
        difference = divergence.difference
        if (self.oracle, self.kind) != (divergence.oracle, str(difference.kind)):
            return False
        if self.kind == Kind.DENORMAL:
            return True
        if self.kind == Kind.ERROR and is_similar(self.detail, difference.detail):
            return True
        return self.is_within(program)

    def is_within(self, program: FuzzProgram) -> bool:
        """Return whether a program has the operations and the transforms of this finding."""
        return {*self.operations} <= program.operations and {*self.transforms} <= {*program.around}


def has_same_root(a: Finding, b: Finding) -> bool:
    """Return whether two findings most likely have one cause, also with other operations.

    A program that is not shrunk to the end has operations that do not matter. Shardings of results
    are decided by the transforms with a mesh: operations are only what is sharded. So are crashes
    under such a transform. An error is known by its message, a changed message by most of its
    words. Flushed numbers are a mode of the compiler, in whichever operation.

    Args:
        a: A dated finding.
        b: A later one.
    """
    if {a.oracle, b.oracle} == {RELEASE, NUMPY}:
        # A change made a result right or wrong.
        return a.turning_points == b.turning_points and a.kind == b.kind and _is_within(a, b)
    if (a.oracle, a.kind, a.releases) != (b.oracle, b.kind, b.releases):
        return False
    meshes = {*a.transforms} & WITH_MESH
    same_meshes = meshes == {*b.transforms} & WITH_MESH
    if a.kind == Kind.SHARDING and same_meshes:
        return True
    if a.kind == Kind.ERROR and is_similar(a.detail, b.detail):
        return True
    if a.detail != b.detail:
        return False
    crash_alike = a.kind == Kind.CRASH and bool(meshes) and same_meshes
    return crash_alike or a.kind in {Kind.OUTCOME, Kind.DENORMAL} or _is_within(a, b)


def _is_within(a: Finding, b: Finding) -> bool:
    """Return whether a program has the operations and the transforms of another one, and more."""
    pairs = ((a.operations, b.operations), (a.transforms, b.transforms))
    return all({*one} <= {*other} for one, other in pairs)
