"""Division of tests into units for workers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from conformance.suites.running.executor import divide_tests
from tests.engine.worlds import job, planned

if TYPE_CHECKING:
    from conformance.engine.job import Job

PLACE = planned("0.6.0")
SCOPES = ("function", "class", "module", "package")
TESTS = st.lists(
    st.tuples(
        st.integers(0, 4),
        st.sampled_from(["test_a", "C::test_a", "C::test_b", "D::test_a"]),
        st.integers(0, 9),
        st.sampled_from(SCOPES),
    ),
    min_size=1, max_size=60, unique_by=lambda one: one[:3],
)  # fmt: skip


def of(file: int, function: str, number: int) -> Job:
    """Return a test of a file."""
    return job(Path("/p") / str(file), f"f{file}.py::{function}[{number}]", PLACE)


@given(TESTS, st.integers(1, 8))
def test_each_test_is_in_one_unit_with_its_fixture(
    chosen: list[tuple[int, str, int, str]], workers: int
) -> None:
    """Tests that share a fixture are in one unit, in order."""
    jobs = [of(*one[:3]) for one in chosen]
    bounds = {one.case.name: scope for one, (*_, scope) in zip(jobs, chosen, strict=True)}
    units = divide_tests(jobs, workers, bounds, lambda _: 1.0)
    assert sorted(one.id for unit in units for one in unit) == sorted(one.id for one in jobs)
    assert all(units)
    home = {one.id: number for number, unit in enumerate(units) for one in unit}
    homes: dict[object, set[int]] = {}
    for one in jobs:
        scope, name = bounds[one.case.name], one.case.name.partition("[")[0]
        bound = {
            "class": name.rpartition("::")[0] if name.count("::") > 1 else one.case.file,
            "module": one.case.file,
            "package": one.case.file.parent,
        }
        if scope in bound:
            homes.setdefault((scope, bound[scope]), set()).add(home[one.id])
    assert all(len(found) == 1 for found in homes.values())
    if workers == 1:
        files = [one.case.file for unit in units for one in unit]
        assert list(dict.fromkeys(files)) == list(dict.fromkeys(one.case.file for one in jobs))


def test_large_file_is_divided() -> None:
    """The parametrisations of a function stay adjacent; small files are not divided."""
    large = [of(0, f"test_{name}", number) for name in "abcd" for number in range(20)]
    small = [of(1, "test_a", number) for number in range(10)]
    units = divide_tests([*small, *large], 2, dict.fromkeys(
        (one.case.name for one in (*small, *large)), "function"
    ), lambda _: 1.0)  # fmt: skip
    assert small in units
    assert max(map(len, units)) <= 10
    order = [one.case.name for unit in units for one in unit if one in large]
    for unit in units:
        assert len({one.case.name.partition("[")[0] for one in unit}) <= 2
    assert len(order) == 80


def test_longest_unit_comes_first() -> None:
    """By earlier durations."""
    jobs = [of(file, "test_a", 0) for file in range(3)]
    took = {jobs[0].id: 1.0, jobs[1].id: 9.0, jobs[2].id: 4.0}
    units = divide_tests(jobs, 2, {}, lambda one: took[one.id])
    assert [unit[0] for unit in units] == [jobs[1], jobs[2], jobs[0]]
