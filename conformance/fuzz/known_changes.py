"""The known case that shows the change of a finding. Pure.

A wrong match hides a discovery, so both the release and the code or the error must agree.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from packaging.specifiers import SpecifierSet

from conformance.fuzz.comparison import Kind
from conformance.fuzz.finding import WITH_MESH

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from conformance.corpus.behaviour_changes import BehaviourChange
    from conformance.fuzz.finding import Finding
    from conformance.model.case import Case, Deviation

_CODE: Final = re.compile(r"`([^`]*)`")
_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_SHARDING: Final = re.compile(r"shard|mesh|Explicit|spec", re.IGNORECASE)
_OBSERVED: Final = frozenset({"outcome", "error", "value", "facts"})
"""Parts of a golden that a finding can show; programs of a campaign have no IR."""
SHORTEST_MATCH: Final = 12
"""Characters of an expression below which it matches errors of many causes."""
LONG_NAME: Final = 6
"""Characters of an operation of one word, such as `jnp.cumsum`, that names a case: shorter ones,
such as `jnp.sum` and `jnp.where`, are words of English."""


def find_known(
    finding: Finding, changes: Iterable[BehaviourChange], cases: Sequence[Case] = ()
) -> str:
    """Return the case that shows the change of a finding, empty for none.

    A change of the history explains a release in which the finding changes if it is of that
    release, and its summary or its case names all operations of the finding, or its summary names
    one of them and a transform. A deviation explains it if its range begins or ends there, and it
    declares the error of the finding. All releases of the finding must be explained.

    Args:
        finding: A dated finding.
        changes: Changes of the history.
        cases: Cases with their deviations.
    """
    open_ = finding.turning_points
    found = ""
    for change in changes:
        explained = open_ & {change.release, change.shown_at}
        if explained and change.shown_by in _OBSERVED:
            named = next((case for case in change.cases if _is_named(finding, change, case)), "")
            open_ = open_ - explained if named else open_
            found = found or named
    for case in cases if finding.kind in {Kind.OUTCOME, Kind.ERROR} else ():
        for deviation in case.deviations:
            if explained := open_ & _find_bounds(deviation, finding):
                open_ = open_ - explained
                found = found or case.id
    return "" if open_ else found


def _is_named(finding: Finding, change: BehaviourChange, case: str) -> bool:
    # A shrunk program has a mesh only if it needs one: its change is one of sharding.
    if {*finding.transforms} & WITH_MESH and not _SHARDING.search(f"{change.summary} {case}"):
        return False
    # Only code: `where`, `round` and `sort` are words of English, too.
    code = {word for text in _CODE.findall(change.summary) for word in _WORD.findall(text)}
    operations = {name.rpartition(".")[2].strip("[]") for name in finding.operations}
    transforms = {name.partition("(")[0] for name in finding.transforms}
    named = operations & code
    if named == operations or (named and transforms & code):
        return True
    words = {*case.partition("/")[2].partition("[")[0].split("_")}
    return all(_names_case(operation, words) for operation in finding.operations)


def _names_case(operation: str, words: set[str]) -> bool:
    parts = [*operation.split(".")[-2:]]
    if parts[0] in {"jnp", "lax", "nn", "random", "linalg", "fft", "scipy", ".at[]", ""}:
        parts = parts[1:]
    # An operation may have several words, and a case names all of them.
    names = {word for part in parts for word in part.strip("[]").split("_") if word}
    return sum(map(len, names)) >= LONG_NAME and names <= words


def _find_bounds(deviation: Deviation, finding: Finding) -> set[str]:
    """Return the releases of a finding in which a deviation with its error begins or ends."""
    error = f"{finding.detail}\n{finding.example}"
    if (
        deviation.platform not in {"", "cpu"}
        or len(deviation.match) < SHORTEST_MATCH
        or deviation.error not in error
        or not re.search(deviation.match, error)
    ):
        return set()
    bounds = {_normalise(one.version) for one in SpecifierSet(deviation.releases)}
    return {release for release in finding.turning_points if _normalise(release) in bounds}


def _normalise(release: str) -> str:
    """Return a release without trailing zeros: a range ends `<0.7`, a release is `0.7.0`."""
    return re.sub(r"(\.0)+$", "", release)
