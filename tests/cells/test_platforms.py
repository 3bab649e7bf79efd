"""Platforms by name, the environment of their workers, and the topologies of GPUs and TPUs."""

from __future__ import annotations

import re
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.cells.platforms import (
    TARGET_CONFIGS,
    TPU_GENERATIONS,
    count_gpus,
    get_platform,
    load_gpus,
    resolve_gpu_topology,
    resolve_tpu_topology,
)
from conformance.errors import UsageError


def test_compile_only_platform_has_a_topology() -> None:
    """With its number of devices."""
    slice_ = get_platform("tpu:v5e:4x4")
    assert (slice_.kind, slice_.packages, slice_.devices) == ("tpu", "tpu", 16)
    assert slice_.compile_only
    assert not slice_.real
    host = get_platform("cuda:h100:1x2x4")
    assert (host.kind, host.packages, host.devices) == ("cuda", "cuda", 8)


def test_variables_of_compile_only_platforms() -> None:
    """No metadata server, no lock against other processes, no autotuning."""
    tpu = get_platform("tpu:v5e:2x2").environment
    assert (tpu["TPU_SKIP_MDS_QUERY"], tpu["ALLOW_MULTIPLE_LIBTPU_LOAD"]) == ("1", "1")
    assert get_platform("cuda:h100:1x1x4").xla_flags == ("--xla_gpu_autotune_level=0",)


def test_real_accelerators_and_cpus_have_no_topology() -> None:
    """Programs run on them."""
    for name in ("cpu", "cpu-mp2", "gpu", "tpu"):
        assert not get_platform(name).compile_only
    assert get_platform("cpu-mp2").processes == 2
    assert get_platform("gpu").real


def test_rocm_is_refused_with_one_reason() -> None:
    """The same for every release: no wheel compiles for it without hardware."""
    rocm = get_platform("rocm:mi300x:1x1x4")
    assert rocm.refused.startswith("no release compiles for ROCm without hardware")
    assert rocm.devices == 4
    assert not get_platform("cuda:h100:1x1x4").refused


@pytest.mark.parametrize(
    "name",
    ["", "cpu-mp0", "tpu:v5e", "cuda:h100", "cuda", "metal", "tpu:v5e:2x2:1", "gpu:h100:1x1x4"],
)
def test_invalid_platform_lists_the_forms(name: str) -> None:
    """With an example."""
    with pytest.raises(UsageError, match=r"expected one of cpu, cpu-mpN, .* e\.g\. tpu:v5e:2x2"):
        get_platform(name)


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


@pytest.mark.parametrize("name", sorted(load_gpus()))
def test_target_configs_have_fields_of_every_release(name: str) -> None:
    """All of these fields, no others, and a source in the first line."""
    text = load_gpus()[name].target_config
    source, _, body = text.partition("gpu_device_info")
    assert re.match(r"# \w", source)
    assert "whitepaper" in source or re.search(r"openxla/xla@[0-9a-f]{10} xla/\S+\.txtpb", source)
    fields = set(re.findall(r"(\w+)(?=:| \{)", f"gpu_device_info{body}"))
    assert fields >= NUMBERS
    assert fields <= NUMBERS | GROUPS
    assert body.count("{") == body.count("}")


def test_gpus_with_description_and_memory() -> None:
    """Common names, with the names and the memory that CUDA reports."""
    known = load_gpus()
    assert {"v100", "t4", "a100", "a6000", "l4", "h100", "h200", "b200", "gb200"} <= known.keys()
    assert known["h100"].description == "NVIDIA H100 80GB HBM3"
    assert 79 < known["h100"].memory / 2**30 < 80
    assert {file.stem for file in TARGET_CONFIGS.iterdir()} == known.keys()


@given(st.tuples(*[st.integers(1, 64)] * 3))
def test_devices_of_a_gpu_topology(sizes: tuple[int, int, int]) -> None:
    """Partitions times hosts times devices."""
    arguments, devices = resolve_gpu_topology("a100", layout := "x".join(map(str, sizes)))
    assert devices == sizes[0] * sizes[1] * sizes[2]
    assert (arguments["platform"], arguments["topology"]) == ("cuda", layout)
    assert arguments["target_config"] == load_gpus()["a100"].target_config


@pytest.mark.parametrize(
    "layout", ["", "4", "1x4", "1x1x0", "1x1x4x1", "1x1x-4", "01x1x4", "axbxc"]
)
def test_invalid_gpu_topology_is_rejected(layout: str) -> None:
    """With the expected form."""
    with pytest.raises(UsageError, match=r"is no topology of GPUs; expected PARTITIONSxHOSTSx"):
        count_gpus(f"cuda:h100:{layout}", layout)


def test_unknown_gpu_lists_the_known_ones() -> None:
    """With a suggestion for a misspelled name."""
    with pytest.raises(UsageError, match=r"unknown GPU 'h10'.*'h100'.*expected one of a100"):
        resolve_gpu_topology("h10", "1x1x4")


EXAMPLES = [(model, text) for model, known in TPU_GENERATIONS.items() for text in known.examples]


@given(st.sampled_from(EXAMPLES))
def test_every_example_is_a_valid_tpu_topology(example: tuple[str, str]) -> None:
    """By name for libtpu, with one or two devices per chip."""
    model, layout = example
    arguments, devices = resolve_tpu_topology(model, layout)
    assert (arguments["platform"], arguments["topology_name"]) == ("tpu", f"{model}:{layout}")
    assert devices == prod(map(int, layout.split("x"))) * TPU_GENERATIONS[model].devices


@given(
    model=st.sampled_from(sorted(TPU_GENERATIONS)),
    sizes=st.lists(st.integers(0, 40), min_size=1, max_size=4),
)
def test_any_tpu_layout_is_valid_or_one_line(model: str, sizes: list[int]) -> None:
    """The number of devices of its chips, or a message with examples."""
    layout = "x".join(map(str, sizes))
    message, devices = "", 0
    try:
        _, devices = resolve_tpu_topology(model, layout)
    except UsageError as error:
        message = str(error)
    if not message:
        assert devices == prod(sizes) * TPU_GENERATIONS[model].devices
        assert max(sizes) <= TPU_GENERATIONS[model].largest
        return
    assert message.startswith(f"platform 'tpu:{model}:{layout}': {model} has no topology")
    assert TPU_GENERATIONS[model].examples[0] in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("model", "layout", "reason"),
    [
        ("v5e", "3x3", "its hosts have 2x2 chips each"),
        ("v5e", "2x2x1", "its chips lie along 2 axes"),
        ("v5e", "16x32", "an axis has 1 to 16 chips"),
        ("v5e", "2x6", "an axis has 1, 2 or a multiple of 4 chips"),
        ("v5e", "02x2", "expected e.g. 1x1, 2x2"),
        ("v5e", "4", "expected e.g. 1x1, 2x2"),
        ("v4", "2x2", "its chips lie along 3 axes"),
        ("v4", "2x2x3", "an axis has 1, 2 or a multiple of 4 chips"),
        ("v4", "1x1x1", "its hosts have 2x2 chips each"),
        ("v5p", "32x4x4", "an axis has 1 to 28 chips"),
    ],
)
def test_invalid_tpu_topology_is_rejected(model: str, layout: str, reason: str) -> None:
    """Before anything is installed."""
    with pytest.raises(UsageError) as caught:
        resolve_tpu_topology(model, layout)
    assert reason in str(caught.value)


def test_unknown_tpu_generation_lists_the_known_ones() -> None:
    """With a suggestion for a misspelled name."""
    with pytest.raises(UsageError, match=r"unknown TPU generation 'v6p'.*expected one of v2, v3"):
        resolve_tpu_topology("v6p", "2x2x1")


def test_single_chip_has_smaller_host_bounds() -> None:
    """By default libtpu assumes hosts with four chips."""
    arguments, devices = resolve_tpu_topology("v6e", "1x1")
    assert (arguments["chips_per_host_bounds"], devices) == ([1, 1, 1], 1)
    assert "chips_per_host_bounds" not in resolve_tpu_topology("v6e", "2x2")[0]


def test_v4_chip_is_one_device() -> None:
    """Its two cores are one device for jax users."""
    assert resolve_tpu_topology("v4", "2x2x1")[0]["chip_config_name"] == "megacore"
