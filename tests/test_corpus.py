"""The corpus that ships: every case can be read, traced to its source, and has its goldens."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from conformance.golden.cleanup import find_orphans
from conformance.golden.store import GoldenStore
from conformance.model.case import is_on

from .shipped import CASES, FAMILY_NAMES, load_shipped_cases

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.model.case import Case


RECORDED_ON = {
    "cpu": 8,
    "cpu-mp2": 8,
    "tpu:v5e:2x2": 4,
    "tpu:v5e:4x4": 16,
    "cuda:h100:1x1x4": 4,
}
"""Platforms with their devices."""
THREAD = re.compile(r"[\w.-]+/[\w.-]+(#\d+|@[0-9a-f]{12})")


FAMILIES = {
    "aot_and_caching": 15,
    "api_removals": 15,
    "api_signatures": 6,
    "autodiff_structure": 20,
    "callbacks_and_io": 8,
    "checkpoints": 25,
    "code_fixes": 2,
    "control_flow_batching": 20,
    "dtype_promotion": 40,
    "executables": 40,
    "export_compat": 10,
    "extensions": 40,
    "memory_and_offload": 12,
    "multi_process": 6,
    "nnx_and_ecosystem": 12,
    "numerics": 25,
    "pallas_kernels": 50,
    "performance": 55,
    "pmap_to_jit": 8,
    "prng": 15,
    "runtime_checks": 40,
    "scipy_functions": 30,
    "shard_map_collectives": 25,
    "shard_map_control_flow": 25,
    "sharded_operations": 15,
    "sharding_in_types": 15,
    "training_steps": 50,
    "vma_types": 15,
    "zero_size_arrays": 4,
}
"""The least number of cases of each family beside the first five."""
FIRST = frozenset(
    {
        "aot_placement",
        "array_api_device",
        "linearize_transpose",
        "nnx_vmap_while",
        "shard_map_while",
    }
)
"""The families that the project began with: 75 cases together."""


def test_every_family_has_its_cases() -> None:
    """No area that the corpus watches is a token: at least so many cases, not counting variants."""
    cases = load_shipped_cases().values()
    found = Counter(family for family, _ in {(case.family, case.name) for case in cases})
    assert set(found) == {*FAMILIES, *FIRST}
    assert {name: found[name] for name, least in FAMILIES.items() if found[name] < least} == {}
    assert sum(found[name] for name in FIRST) >= 75
    assert found.total() >= 300


@pytest.mark.parametrize("family", FAMILY_NAMES)
def test_a_case_tells_its_story(family: str) -> None:
    """It has a docstring, an upstream thread, and a reason and a range for each deviation."""
    cases = [case for case in load_shipped_cases().values() if case.family == family]
    assert cases
    assert {case.id: gaps for case in cases if (gaps := [*find_gaps(case)])} == {}


def find_gaps(case: Case) -> Iterator[str]:
    """Yield what a case lacks of its story."""
    if not case.doc:
        yield "no docstring"
    if not THREAD.fullmatch(case.source):
        yield f"source {case.source!r} is no upstream thread"
    for deviation in case.deviations:
        if not deviation.reason:
            yield "a deviation without a reason"
        if deviation.issue and not THREAD.fullmatch(deviation.issue):
            yield f"issue {deviation.issue!r} is no upstream thread"


def test_every_case_has_goldens() -> None:
    """Each is recorded from some release to the newest, on the first platform that it is for."""
    store = GoldenStore(CASES)
    cases = load_shipped_cases().values()
    assert [c.id for c in cases if store.lookup(c, first_platform(c), "0.12.0.1") is None] == []


def first_platform(case: Case) -> str:
    """Return the first of `RECORDED_ON` that a case is for, and that has devices enough for it."""
    return next(
        name
        for name, devices in RECORDED_ON.items()
        if case.devices <= devices
        and (not case.platforms or any(is_on(name, one) for one in case.platforms))
    )


def test_no_golden_has_lost_its_case() -> None:
    """Where a case is renamed or removed, `conformance accept --gone` removes its goldens."""
    assert find_orphans(CASES, load_shipped_cases().values()) == ()


def test_what_covers_the_changelog_is_there() -> None:
    """Each case that `docs/coverage.md` names, in the file that it links."""
    text = (CASES.parent / "docs" / "coverage.md").read_text(encoding="utf-8")
    named = re.findall(r"\[`([\w/]+)(\[[\w.]+\])?`\]\(\.\./([\w/.]+)\)", text)
    assert len(named) > 100
    cases = load_shipped_cases()
    files = {id_: str(case.file.relative_to(CASES.parent)) for id_, case in cases.items()}
    known = {(id_.partition("[")[0], file) for id_, file in files.items()}
    assert {(name, file) for name, _, file in named} - known == set()
    assert [name + param for name, param, _ in named if param and name + param not in cases] == []
