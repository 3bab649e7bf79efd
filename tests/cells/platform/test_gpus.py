"""GPUs: their target configs as data, and the topologies they are put together in."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.cells.platform.gpus import TARGET_CONFIGS, gpu_devices, gpu_topology, gpus
from conformance.errors import UsageError

NUMBERS = {
    "threads_per_block_limit",
    "threads_per_warp",
    "shared_memory_per_block",
    "shared_memory_per_core",
    "threads_per_core_limit",
    "core_count",
    "fpus_per_core",
    "block_dim_limit_x",
    "block_dim_limit_y",
    "block_dim_limit_z",
    "memory_bandwidth",
    "l2_cache_size",
    "clock_rate_ghz",
    "device_memory_size",
    "shared_memory_per_block_optin",
    "registers_per_core_limit",
    "registers_per_block_limit",
}
"""Numbers that the parser of every release knows; others are errors in the older ones."""
GROUPS = {
    "gpu_device_info",
    "cuda_compute_capability",
    "major",
    "minor",
    "dnn_version_info",
    "platform_name",
    "device_description_str",
}


@pytest.mark.parametrize("name", sorted(gpus()))
def test_a_target_config_has_the_fields_that_every_release_knows(name: str) -> None:
    """All of them, no other, and a source on top."""
    text = gpus()[name].target_config
    source, _, body = text.partition("gpu_device_info")
    assert re.match(r"# \w", source)
    assert "whitepaper" in source or re.search(r"openxla/xla@[0-9a-f]{10} xla/\S+\.txtpb", source)
    fields = set(re.findall(r"(\w+)(?=:| \{)", f"gpu_device_info{body}"))
    assert fields >= NUMBERS
    assert fields <= NUMBERS | GROUPS
    assert body.count("{") == body.count("}")


def test_the_gpus_that_are_asked_for_are_there() -> None:
    """Named as people name them, with what CUDA calls them and their memory."""
    known = gpus()
    assert {"v100", "t4", "a100", "a6000", "l4", "h100", "h200", "b200", "gb200"} <= known.keys()
    assert known["h100"].description == "NVIDIA H100 80GB HBM3"
    assert 79 < known["h100"].memory / 2**30 < 80
    assert {file.stem for file in TARGET_CONFIGS.iterdir()} == known.keys()


@given(st.tuples(*[st.integers(1, 64)] * 3))
def test_a_topology_has_as_many_devices_as_its_sizes_say(sizes: tuple[int, int, int]) -> None:
    """Partitions times hosts times devices."""
    asked, devices = gpu_topology("a100", layout := "x".join(map(str, sizes)))
    assert devices == sizes[0] * sizes[1] * sizes[2]
    assert (asked["platform"], asked["topology"]) == ("cuda", layout)
    assert asked["target_config"] == gpus()["a100"].target_config


@pytest.mark.parametrize(
    "layout", ["", "4", "1x4", "1x1x0", "1x1x4x1", "1x1x-4", "01x1x4", "axbxc"]
)
def test_what_is_no_topology_is_refused(layout: str) -> None:
    """With the form that one has."""
    with pytest.raises(UsageError, match=r"is no topology of GPUs; expected PARTITIONSxHOSTSx"):
        gpu_devices(f"cuda:h100:{layout}", layout)


def test_an_unknown_gpu_is_refused_with_those_there_are() -> None:
    """With the one that was meant, when that can be told."""
    with pytest.raises(UsageError, match=r"unknown GPU 'h10'.*'h100'.*expected one of a100"):
        gpu_topology("h10", "1x1x4")
