"""Platforms by name: what each is, and what its workers and jobs are given."""

from __future__ import annotations

import pytest

from conformance.cells.platform.platform import get_platform
from conformance.errors import UsageError


def test_a_compile_only_platform_has_a_topology_and_its_devices() -> None:
    """Programs are compiled for it, never run."""
    slice_ = get_platform("tpu:v5e:4x4")
    assert (slice_.kind, slice_.packages, slice_.devices) == ("tpu", "tpu", 16)
    assert slice_.compile_only
    assert not slice_.real
    host = get_platform("cuda:h100:1x2x4")
    assert (host.kind, host.packages, host.devices) == ("cuda", "cuda", 8)


def test_plugins_are_kept_quiet_and_apart() -> None:
    """No metadata server is asked, no lock is held against another process, nothing is tuned."""
    tpu = get_platform("tpu:v5e:2x2").environment
    assert (tpu["TPU_SKIP_MDS_QUERY"], tpu["ALLOW_MULTIPLE_LIBTPU_LOAD"]) == ("1", "1")
    assert get_platform("cuda:h100:1x1x4").xla_flags == ("--xla_gpu_autotune_level=0",)


def test_real_accelerators_and_cpus_have_no_topology() -> None:
    """Programs run there."""
    for name in ("cpu", "cpu-mp2", "gpu", "tpu"):
        assert not get_platform(name).compile_only
    assert get_platform("cpu-mp2").processes == 2
    assert get_platform("gpu").real


def test_rocm_is_refused_with_one_reason() -> None:
    """No wheel compiles for it where it is not: every release says the same."""
    rocm = get_platform("rocm:mi300x:1x1x4")
    assert rocm.refused.startswith("no release compiles for ROCm without hardware")
    assert rocm.devices == 4
    assert not get_platform("cuda:h100:1x1x4").refused


@pytest.mark.parametrize(
    "name",
    ["", "cpu-mp0", "tpu:v5e", "cuda:h100", "cuda", "metal", "tpu:v5e:2x2:1", "gpu:h100:1x1x4"],
)
def test_a_name_that_is_none_is_refused_with_the_forms(name: str) -> None:
    """With an example."""
    with pytest.raises(UsageError, match=r"expected one of cpu, cpu-mpN, .* e\.g\. tpu:v5e:2x2"):
        get_platform(name)
