"""A case as discovered without importing it: keywords of its decorator, and its location."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - msgspec reads the annotations
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path  # noqa: TC003 - msgspec reads the annotations
from typing import TYPE_CHECKING, Any, Final, Literal

from conformance.model.ranges import in_range

if TYPE_CHECKING:
    from collections.abc import Iterable

Kind = Literal["program", "probe", "test"]
VARIANTS = ("jit", "eager", "aot", "vmap_of_one", "unsharded")
"""Variants of a program, see `conformance.worker.variants`."""


class Policy(StrEnum):
    """The effect of a change of one artifact on a run."""

    GATE = "gate"
    """It fails the run."""
    WARN = "warn"
    """The report warns of it."""
    INFORM = "inform"
    """The report mentions it."""


# From release to release optimised HLO changes most often and facts least, so only facts fail a run
# unless a case decides otherwise.
POLICY = {
    "facts": Policy.GATE,
    "jaxpr": Policy.WARN,
    "stablehlo": Policy.WARN,
    "stablehlo-tpu": Policy.WARN,
    "stablehlo-cuda": Policy.WARN,
    "stablehlo-rocm": Policy.WARN,
    "hlo": Policy.INFORM,
}
"""Default policy by artifact; values and errors always gate."""
SIZE: Final = "size"
"""Parameter of the function of a case with sizes."""
FEWEST_SIZES: Final = 3
"""Sizes of a case at least: every exponent of growth fits two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """A declared non-conformance.

    Attributes:
        releases: PEP 440 specifier of the jax releases that show it, e.g. `<0.6`; empty is all.
        outcome: Observed outcome (`raised`, `crashed`, `timed_out`, `out_of_memory`), or `ok` if
            the program runs and its value deviates from the reference.
        error: Name of the exception type, for `raised`.
        match: Regular expression searched in the error message.
        platform: Platform that shows it; empty is all.
        packages: Further specifiers by package, e.g. `{"flax": ">=0.10.7"}`.
        reason: Reason in a few words.
        issue: Upstream thread, `owner/repo#N`.
        may_pass: Whether only some runs show it, e.g. of a test with random examples: a run without
            it is then not unexpected.
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
            release: jax release of the cell, a PEP 440 version; for a nightly see `in_range`.
            platform: Platform of the cell, e.g. `cpu`.
            versions: Package versions of the cell. A cell without a package of `packages` is not
                covered.
        """
        if self.platform and not is_on(platform, self.platform):
            return False
        if not in_range(release, self.releases):
            return False
        # A deviation of a combination does not apply to a cell without one of its packages.
        return all(
            name in versions and in_range(versions[name], spec)
            for name, spec in self.packages.items()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The maximum distance of a value from its reference on a platform.

    Attributes:
        platform: Platform, or all platforms of a kind, see `is_on`.
        ulp: Units in the last place of the observed dtype; 0 is correctly rounded.
        leaves: Keys of a dictionary, or positions in a tuple, to which it applies; empty is all.
        reason: Origin of the error in a few words.
        source: Thread, commit or document with evidence.
    """

    platform: str
    ulp: int
    leaves: tuple[str | int, ...] = ()
    reason: str = ""
    source: str = ""

    def covers(self, path: str) -> bool:
        """Say whether the budget applies to a leaf.

        Args:
            path: Path of the leaf, e.g. `out['exp']`.
        """
        # Paths are spelled as `jax.tree_util.keystr` spells them, so that `repr` matches both kinds
        # of key.
        return not self.leaves or path in {f"out[{key!r}]" for key in self.leaves}


def find_ulp(path: str, budgets: Iterable[Budget]) -> int | None:
    """Return the ULP of the first budget that applies to a leaf, None if no budget does.

    Args:
        path: Path of the leaf, e.g. `out['exp']`.
        budgets: Budgets of one platform.
    """
    return next((budget.ulp for budget in budgets if budget.covers(path)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A case, or a parametrisation of it.

    Attributes:
        id: `family/name` or `family/name[param]`.
        family: Name of the folder of its file.
        topic: Stem of its file.
        name: Function name, without the parameter.
        kind: `program`, `probe`, or `test` of a pytest suite.
        file: Case file.
        line: Line of its `def`, from 1.
        doc: Docstring, empty for none.
        code: Source of the function, with its decorators.
        params: Keyword arguments of this parametrisation.
        given: Parameters whose values Hypothesis draws, in order.
        examples: Examples to draw.
        sizes: Values of the parameter `SIZE`, ascending; a run has the first, `bench` has all.
        devices: Number of devices that it needs, and that a worker creates on CPU. 0 is all devices
            of the cell.
        platforms: Platforms that it runs on; empty is all.
        requires: Packages that the cell must have, PEP 508 names or specifiers.
        releases: PEP 440 specifier of the jax releases that it applies to; empty is all.
        source: Upstream thread or document of its origin.
        records: Why it has neither a reference nor a claim; empty if it has one of them.
        deviations: Declared non-conformances.
        facts: Fact claims on the optimised HLO, by name.
        policy: Policy by artifact; the default is `POLICY`.
        x64: Whether `jax_enable_x64` is on.
        timeout: Wall-clock limit of one job, in seconds.
        memory: Limit of the job's resident memory, in MiB.
        observation_mb: Limit of the observation of a job (values, references and artifacts
            together), in MiB.
        xla_flags: Flags added to XLA_FLAGS.
        config: `jax.config` values.
        rtol: Tolerance relative to the reference; None is the dtype's default, 0 is exact.
        atol: Absolute tolerance; None is 0 if `rtol` is given, else scaled to the leaf.
        budgets: Tolerances relative to the reference in ULP; the first that applies to a leaf
            counts.
        same_as: Variants that must give the same value.
        content_hash: Hash of its file and of the helpers in the folder of the file.
        home: Parent folder of its goldens; None for a case in a case file, whose goldens are in the
            folder of the file.
        arguments: Command-line arguments that select it, quoted for a shell, if they are not its
            id: of a test for `conformance suite run`, of a call in a script `SCRIPT.py::NAME`.
        group: Group of a test in its suite, empty for none.
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
    given: tuple[str, ...] = ()
    examples: int = 20
    sizes: tuple[int, ...] = ()
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
        """Folder of the families with their goldens."""
        return self.file.parent.parent if self.home is None else self.home

    @property
    def noun(self) -> str:
        """Noun for counts of such cases."""
        return "test" if self.kind == "test" else "case"

    def select_platform(self, platform: str) -> Case:
        """Return the case with only the budgets of a platform.

        Args:
            platform: Platform of a cell.
        """
        if not self.budgets:
            return self
        budgets = tuple(b for b in self.budgets if is_on(platform, b.platform))
        return replace(self, budgets=budgets)

    def policy_of(self, artifact: str) -> Policy:
        """Return the policy for an artifact."""
        return self.policy.get(artifact, POLICY[artifact])


def is_on(platform: str, named: str) -> bool:
    """Say whether a platform matches a platform or kind in a case.

    Args:
        platform: Platform of a cell, e.g. `tpu:v5e:2x2`.
        named: Platform, or a kind of platforms: `tpu`, `tpu:v5e`, `cpu`; `cpu-mp` for any number of
            processes; `gpu` for CUDA and ROCm too.
    """
    # Compared by components: `tpu:v5` is no prefix of `tpu:v5e:2x2`.
    parts, head = platform.split(":"), named.split(":")
    if named == "gpu":
        return parts[0] in {"gpu", "cuda", "rocm"}
    # Several processes on CPUs are still CPUs: a deviation of `cpu` covers `cpu-mp2` too.
    return parts[: len(head)] == head or (
        named in {"cpu", "cpu-mp"} and platform.startswith("cpu-mp")
    )
