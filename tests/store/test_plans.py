"""Plans in compressed form."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from conformance.store.schema import pack_jobs, unpack_jobs

JOBS = st.sets(st.integers(1, 2**31 - 1))


@given(JOBS)
def test_unpacked_plan_has_the_packed_jobs(jobs: set[int]) -> None:
    """For any set of jobs."""
    _, kept = pack_jobs(np.array(sorted(jobs), np.int64))
    assert unpack_jobs(kept).tolist() == sorted(jobs)


@given(JOBS, JOBS)
def test_equal_jobs_have_one_key(one: set[int], other: set[int]) -> None:
    """The same jobs are the same plan."""
    keys = [pack_jobs(np.array(sorted(jobs), np.int64))[0] for jobs in (one, other)]
    assert (keys[0] == keys[1]) is (one == other)


def test_consecutive_jobs_compress_to_almost_nothing() -> None:
    """10,000 jobs in less than a hundred bytes."""
    assert len(pack_jobs(np.arange(1, 10_001))[1]) < 100
