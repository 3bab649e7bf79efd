"""TPU generations: their topologies, how many devices those have, and what is refused."""

from __future__ import annotations

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.cells.platform.tpus import GENERATIONS, tpu_topology
from conformance.errors import UsageError

EXAMPLES = [(model, text) for model, known in GENERATIONS.items() for text in known.examples]


@given(st.sampled_from(EXAMPLES))
def test_every_example_is_a_topology_of_its_chips(example: tuple[str, str]) -> None:
    """Libtpu is asked for it by name, and a chip has one device or two."""
    model, layout = example
    asked, devices = tpu_topology(model, layout)
    assert (asked["platform"], asked["topology_name"]) == ("tpu", f"{model}:{layout}")
    assert devices == prod(map(int, layout.split("x"))) * GENERATIONS[model].devices


@given(
    model=st.sampled_from(sorted(GENERATIONS)),
    sizes=st.lists(st.integers(0, 40), min_size=1, max_size=4),
)
def test_a_topology_is_one_or_is_refused_in_one_line(model: str, sizes: list[int]) -> None:
    """Whatever the sizes: as many devices as chips have, or what can be had instead."""
    layout = "x".join(map(str, sizes))
    said, devices = "", 0
    try:
        _, devices = tpu_topology(model, layout)
    except UsageError as error:
        said = str(error)
    if not said:
        assert devices == prod(sizes) * GENERATIONS[model].devices
        assert max(sizes) <= GENERATIONS[model].largest
        return
    assert said.startswith(f"platform 'tpu:{model}:{layout}': {model} has no topology")
    assert GENERATIONS[model].examples[0] in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("model", "layout", "why"),
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
def test_what_a_generation_does_not_have_is_refused(model: str, layout: str, why: str) -> None:
    """Before anything is installed or asked."""
    with pytest.raises(UsageError) as caught:
        tpu_topology(model, layout)
    assert why in str(caught.value)


def test_an_unknown_generation_is_refused_with_those_there_are() -> None:
    """With the one that was meant, when that can be told."""
    with pytest.raises(UsageError, match=r"unknown TPU generation 'v6p'.*expected one of v2, v3"):
        tpu_topology("v6p", "2x2x1")


def test_one_chip_is_a_host_of_its_own() -> None:
    """Libtpu must be told: by itself it takes hosts to have four chips."""
    asked, devices = tpu_topology("v6e", "1x1")
    assert (asked["chips_per_host_bounds"], devices) == ([1, 1, 1], 1)
    assert "chips_per_host_bounds" not in tpu_topology("v6e", "2x2")[0]


def test_the_two_cores_of_a_v4_chip_are_one_device() -> None:
    """As jax users see them."""
    assert tpu_topology("v4", "2x2x1")[0]["chip_config_name"] == "megacore"
