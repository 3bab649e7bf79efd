"""A finding of fuzzing as the text of an upstream issue. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.fuzz.comparison import Kind
from conformance.fuzz.evaluation import NUMPY, PROCESS, RELEASE
from conformance.fuzz.script_file import TITLES
from conformance.model.outcome import Outcome
from conformance.report.markup import fence, to_code, to_table
from conformance.report.text import flatten

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from conformance.fuzz.finding import Finding, ReleaseResult

TITLE: Final = 100
"""Characters of a title before the releases."""
MOST_CODE: Final = 60_000
"""Characters of the program; upstream refuses an issue of more than 65,536."""
_NOUNS: Final = {
    Kind.CRASH: "crash", Kind.HANG: "hang", Kind.OUTCOME: "error", Kind.ERROR: "different error",
    Kind.STRUCTURE: "different number of results", Kind.SHAPE: "different shape",
    Kind.DTYPE: "different dtype", Kind.NAN: "different NaN or infinity",
    Kind.VALUE: "different values", Kind.WEAK_TYPE: "different weak type",
    Kind.DENORMAL: "denormal numbers flushed or not", Kind.SHARDING: "different sharding",
}  # fmt: skip
_PACKAGES: Final = ("jax", "jaxlib", "numpy", "scipy", "ml-dtypes")


class ReleaseRange(NamedTuple):
    """Neighbouring releases with the same result.

    Attributes:
        first: First release.
        last: Last release.
        result: Result on the first one.
        length: Number of releases.
    """

    first: str
    last: str
    result: ReleaseResult
    length: int = 1

    @property
    def name(self) -> str:
        """The releases, e.g. `0.6.0 to 0.8.3`."""
        return self.first if self.first == self.last else f"{self.first} to {self.last}"

    @property
    def fill(self) -> str:
        """How a page fills it: `ok`, `right`, `wrong`, `raised`, `died`, or `none`."""
        if self.result.outcome == Outcome.OK:
            return {None: "ok", True: "right", False: "wrong"}[self.result.right]
        names = {Outcome.RAISED: "raised", Outcome.UNSUPPORTED: "none"}
        return names.get(Outcome(self.result.outcome), "died")


def group_releases(finding: Finding) -> list[ReleaseRange]:
    """Return the results of a finding, one for neighbouring releases with the same result.

    Args:
        finding: A dated finding.
    """
    ranges: list[ReleaseRange] = []
    for result in finding.results:
        last = ranges[-1] if ranges else None
        # For the oracle `release`, `differs` marks the first release of another result. Texts are
        # not compared: they may differ within the error bound.
        if last is not None and (
            last.result.outcome == result.outcome
            and (
                not result.differs
                if finding.oracle == RELEASE
                else result.differs == last.result.differs
            )
        ):
            ranges[-1] = last._replace(last=result.release, length=last.length + 1)
        else:
            ranges.append(ReleaseRange(result.release, result.release, result))
    return ranges


def render_fuzz_issue(finding: Finding, script: str, versions: Mapping[str, str]) -> str:
    """Return the text of an upstream issue, as Markdown.

    Args:
        finding: A dated finding.
        script: Its script.
        versions: Versions of the packages of the newest release, by normalised name.
    """
    # The headings are those of the bug report form of jax-ml/jax.
    system = {name: versions[name] for name in _PACKAGES if name in versions}
    parts = [
        f"**Title:** {make_title(finding)}",
        "### Description",
        *_describe(finding),
        "### Code\n\nRun it with `python program.py`:",
        fence(script.rstrip(), MOST_CODE, "python"),
        "### System info (python version, jaxlib version, accelerator, etc.)",
        fence("\n".join([*(f"{n:10} {v}" for n, v in system.items()), "platform   cpu"])),
    ]
    return "\n\n".join(parts) + "\n"


def make_title(finding: Finding) -> str:
    """Return the title of an issue, e.g. `jnp.cumsum under vmap: crash since jax 0.12.0`."""
    around = f" under {', '.join(finding.transforms)}" if finding.transforms else ""
    program = to_code(flatten(", ".join(finding.operations) + around, TITLE))
    return f"{program}: {_name_difference(finding)}"


def _name_difference(finding: Finding) -> str:
    noun = _NOUNS[Kind(finding.kind)]
    if finding.oracle == NUMPY:
        return f"{noun} from NumPy"
    if finding.oracle == PROCESS:
        return noun
    if finding.oracle != RELEASE:
        return f"{noun} with {TITLES[finding.oracle]} than with jit"
    if finding.fixed_in:
        return f"{noun} before jax {finding.fixed_in}"
    return f"{noun} since jax {finding.releases[-1]}" if finding.releases else noun


def describe_difference(finding: Finding) -> str:
    """Return the difference in a line: the message of an error, or an example with numbers.

    Args:
        finding: The finding.
    """
    kind = Kind(finding.kind)
    if kind in {Kind.VALUE, Kind.NAN, Kind.DENORMAL, Kind.SHARDING}:
        where = "" if finding.oracle == RELEASE else f" ({TITLES[finding.oracle]})"
        return f"{_NOUNS[kind]}{where}: {finding.example or finding.detail}"
    if finding.oracle in {RELEASE, PROCESS}:
        return finding.detail
    return f"{finding.detail} ({TITLES[finding.oracle]})"


def _describe(finding: Finding) -> Iterator[str]:
    yield f"The program below gives {_describe_finding(finding)}."
    if finding.example:
        yield fence(finding.example)
    if finding.results:
        yield render_releases(finding)
    yield f"Expected: {_describe_expected(finding)}."


def _describe_finding(finding: Finding) -> str:
    noun = _NOUNS[Kind(finding.kind)]
    article = "" if noun.endswith("s") else "a " if noun[0] not in "aeiou" else "an "
    if finding.oracle == NUMPY:
        return f"{article}{noun} from NumPy in float64, beyond the rounding error of its dtype"
    if finding.oracle == PROCESS:
        return f"{article}{noun}"
    if finding.oracle != RELEASE:
        return f"{article}{noun} with {TITLES[finding.oracle]} than with jit, on one release"
    return f"{article}{noun} depending on the release of jax"


def render_releases(finding: Finding) -> str:
    """Return the results of a finding on each release as a table, empty if they are unknown.

    Args:
        finding: A dated finding.
    """
    ranges = group_releases(finding)
    other = any(one.result.other for one in ranges)
    numpy = any(one.result.right is not None for one in ranges)
    rows = [["jax", "jit" if other else "result"]]
    rows[0] += [TITLES[finding.oracle]] if other else []
    rows[0] += ["agrees with NumPy"] if numpy else []
    for one in ranges:
        row = [one.name, to_code(one.result.text)]
        row += [to_code(one.result.other) if one.result.other else ""] if other else []
        row += [{True: "yes", False: "no", None: ""}[one.result.right]] if numpy else []
        rows.append(row)
    return to_table(rows) if ranges else ""


def _describe_expected(finding: Finding) -> str:
    if finding.oracle == NUMPY:
        return "the result of NumPy within the rounding error"
    if finding.oracle == PROCESS:
        return "a result, or an error of Python"
    if finding.oracle != RELEASE:
        return "the result that jit gives"
    tried = [one for one in group_releases(finding) if one.result.outcome != "unsupported"]
    if agreeing := [one.name for one in tried if one.result.right]:
        return f"the result of jax {', '.join(agreeing)}, with which NumPy in float64 agrees"
    if finding.fixed_in:
        return f"the result of jax {tried[-1].name}"
    where = f"of jax {tried[0].name}" if tried else "on each release"
    return f"the result {where}, unless the change is intended"
