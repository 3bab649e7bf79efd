"""A case as discovered without importing it: literals of the decorator, and where it stands."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - msgspec reads the annotations
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path  # noqa: TC003 - the same
from typing import TYPE_CHECKING, Any, Literal

from conformance.model.ranges import in_range

if TYPE_CHECKING:
    from collections.abc import Iterable

Kind = Literal["program", "probe", "test"]
VARIANTS = ("jit", "eager", "aot", "vmap_of_one", "unsharded")
"""Other ways to run a program, as `conformance.worker.variants` does."""


class Policy(StrEnum):
    """The effect of a change of one artifact on a run."""

    GATE = "gate"
    """It fails the run."""
    WARN = "warn"
    """The report warns of it."""
    INFORM = "inform"
    """The report mentions it."""


POLICY = {
    "facts": Policy.GATE,
    "jaxpr": Policy.WARN,
    "stablehlo": Policy.WARN,
    "stablehlo-tpu": Policy.WARN,
    "stablehlo-cuda": Policy.WARN,
    "stablehlo-rocm": Policy.WARN,
    "hlo": Policy.INFORM,
}
"""Policy by artifact, where a case says nothing else; values and errors always gate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """A declared non-conformance.

    Attributes:
        releases: PEP 440 specifier of the jax releases that show it, e.g. `<0.6`; empty is all.
        outcome: The outcome seen (`raised`, `crashed`, `timed_out`, `out_of_memory`), or `ok`
            when the program runs but its value deviates from the reference.
        error: Name of the exception type seen, for `raised`.
        match: Regular expression searched in the error message.
        platform: Platform it is seen on; empty is all.
        packages: Further specifiers by package, e.g. `{"flax": ">=0.10.7"}`.
        reason: Why, in a few words.
        issue: Upstream thread, `owner/repo#N`.
        may_pass: Whether it is seen in some runs only, as of a test that draws its examples: then
            passing does not end it.
    """

    releases: str = ""
    outcome: str = "raised"
    error: str = ""
    match: str = ""
    platform: str = ""
    packages: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""
    issue: str = ""
    may_pass: bool = False

    def covers(self, release: str, platform: str, versions: Mapping[str, str]) -> bool:
        """Say whether the deviation is declared for a cell.

        Args:
            release: The cell's jax release, a PEP 440 version.
            platform: The cell's platform, e.g. `cpu`.
            versions: Package versions of the cell; a package of `packages` that is absent
                from it is not covered.

        Returns:
            True when release, platform and every package fall into the declared ranges; a
            nightly counts as the release that it leads to, see `in_range`.
        """
        if self.platform and not is_on(platform, self.platform):
            return False
        if not in_range(release, self.releases):
            return False
        return all(
            name in versions and in_range(versions[name], spec)
            for name, spec in self.packages.items()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How far from its reference a value may be on a platform.

    Attributes:
        platform: The platform, or all of a kind, see `is_on`.
        ulp: Units in the last place of the dtype observed; 0 is correctly rounded.
        leaves: Keys of a dictionary, or places in a tuple, that it is for; empty is all.
        reason: Where the error comes from, in a few words.
        source: Thread, commit or document that says so.
    """

    platform: str
    ulp: int
    leaves: tuple[str | int, ...] = ()
    reason: str = ""
    source: str = ""

    def covers(self, path: str) -> bool:
        """Say whether it is for a leaf.

        Args:
            path: Path of the leaf, e.g. `out['exp']`.
        """
        return not self.leaves or path in {f"out[{key!r}]" for key in self.leaves}


def ulp_of(path: str, budgets: Iterable[Budget]) -> int | None:
    """Return how far a leaf may be off: the ULP of the first budget for it, None where none is.

    Args:
        path: Path of the leaf, e.g. `out['exp']`.
        budgets: Those of one platform.
    """
    return next((one.ulp for one in budgets if one.covers(path)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One case, or one parametrisation of it.

    Attributes:
        id: `family/name` or `family/name[param]`.
        family: Folder the case lives in.
        topic: Stem of its file.
        name: Function name, without the parameter.
        kind: `program`, `probe`, or `test` of a pytest suite.
        file: File it is written in.
        line: Line of its `def`, from 1.
        doc: Its docstring, empty when it has none.
        code: The function as written, with its decorators.
        params: Keyword arguments of this parametrisation.
        devices: Devices the case needs; also the device count the worker makes on CPU. 0 is all
            that the cell has.
        platforms: Platforms it runs on; empty is all.
        requires: Packages (PEP 508 names or specifiers) the cell must have.
        releases: PEP 440 specifier of the jax releases it applies to; empty is all.
        source: Upstream thread or document it comes from.
        records: Why it has neither a reference nor a claim and only records, empty if it has.
        deviations: Declared non-conformances.
        facts: Fact claims on the optimised HLO, by name.
        policy: What a change does, by artifact; those left out are as in `POLICY`.
        x64: Whether `jax_enable_x64` is on.
        timeout: Wall-clock limit of one job, in seconds.
        memory: Limit of the job's resident memory, in MiB.
        observation_mb: Limit of what one job observes (values, references and artifacts
            together), in MiB.
        xla_flags: Flags added to XLA_FLAGS.
        config: `jax.config` values.
        rtol: Tolerance relative to the reference; None is the dtype's default, 0 is exact.
        atol: Absolute tolerance; None is 0 under a stated rtol, else scaled to the leaf.
        budgets: Tolerances to the reference in ULP, by platform; the first for a leaf counts.
        same_as: Ways to run it in each of which it is to give the same value.
        content_hash: Hash of the file it is written in, and of the helpers beside it.
        home: Folder that its goldens are below; None where the case is written by hand, beside
            which they lie.
        arguments: What names it on a command line, spelled for a shell, where that is not its id:
            of a test for `conformance suite run`, of a call in a script `SCRIPT.py::NAME`.
        group: Of a test, the group that its suite counts it under, empty for none.
    """

    id: str
    family: str
    topic: str
    name: str
    kind: Kind
    file: Path
    line: int
    doc: str = ""
    code: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    devices: int = 1
    platforms: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    releases: str = ""
    source: str = ""
    records: str = ""
    deviations: tuple[Deviation, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    policy: Mapping[str, Policy] = field(default_factory=dict)
    x64: bool = False
    timeout: float = 60.0
    memory: int = 4096
    observation_mb: int = 256
    xla_flags: tuple[str, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    rtol: float | None = None
    atol: float | None = None
    budgets: tuple[Budget, ...] = ()
    same_as: tuple[str, ...] = ()
    content_hash: str = ""
    home: Path | None = None
    arguments: str = ""
    group: str = ""

    @property
    def families(self) -> Path:
        """Folder of the families, each with its goldens."""
        return self.file.parent.parent if self.home is None else self.home

    @property
    def noun(self) -> str:
        """The noun by which it is counted."""
        return "test" if self.kind == "test" else "case"

    def on(self, platform: str) -> Case:
        """Return the case as it is on a platform: with the budgets of that one alone.

        Args:
            platform: A cell's platform.
        """
        if not self.budgets:
            return self
        return replace(
            self, budgets=tuple(one for one in self.budgets if is_on(platform, one.platform))
        )

    def policy_of(self, artifact: str) -> Policy:
        """Return what a change of an artifact does to a run."""
        return self.policy.get(artifact, POLICY[artifact])


def is_on(platform: str, named: str) -> bool:
    """Say whether a platform is one that a case names.

    Args:
        platform: A cell's platform, e.g. `tpu:v5e:2x2`.
        named: The platform itself, or all of a kind: `tpu`, `tpu:v5e`, `cpu`; `cpu-mp` is any
            number of processes; `gpu` is CUDA and ROCm too.
    """
    parts, head = platform.split(":"), named.split(":")
    if named == "gpu":
        return parts[0] in {"gpu", "cuda", "rocm"}
    return parts[: len(head)] == head or (
        named in {"cpu", "cpu-mp"} and platform.startswith("cpu-mp")
    )
