"""TPU generations as data, and the topologies that a slice of them can have."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any, Final

from conformance.errors import UsageError
from conformance.wording import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

_LAYOUT = re.compile(r"[1-9]\d{0,3}(x[1-9]\d{0,3}){1,2}")
_SHORT: Final = (1, 2)
_CUBE: Final = 4
"""Chips along an axis of the block that larger slices are made of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """A generation of TPUs.

    Attributes:
        name: As libtpu spells it.
        axes: Axes of its interconnect: 2 for a torus of chips in a plane, 3 in space.
        largest: Longest axis of a slice, in chips.
        devices: Devices that jax sees on a chip.
        host: Chips of a host, along each axis.
        options: What libtpu must be told for the devices to be those that jax users see.
        examples: Topologies that a user meets: one chip, one host, slices.
    """

    name: str
    axes: int
    largest: int
    devices: int
    host: tuple[int, int, int]
    options: Mapping[str, Any] = field(default_factory=dict)
    examples: tuple[str, ...]


GENERATIONS: Final = {
    generation.name: generation
    for generation in (
        Generation(
            name="v2", axes=2, largest=16, devices=2, host=(2, 2, 1),
            examples=("2x2", "4x4", "8x8", "16x16"),
        ),
        Generation(
            name="v3", axes=2, largest=32, devices=2, host=(2, 2, 1),
            examples=("2x2", "4x4", "8x8", "16x16", "32x32"),
        ),
        Generation(
            name="v4", axes=3, largest=16, devices=1, host=(2, 2, 1),
            options={"chip_config_name": "megacore"},
            examples=("2x2x1", "2x2x2", "2x2x4", "2x4x4", "4x4x4", "4x4x8", "8x8x8"),
        ),
        Generation(
            name="v5e", axes=2, largest=16, devices=1, host=(2, 2, 1),
            examples=("1x1", "2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16"),
        ),
        Generation(
            name="v5p", axes=3, largest=28, devices=1, host=(2, 2, 1),
            examples=("2x2x1", "2x2x2", "2x2x4", "2x4x4", "4x4x4", "4x4x8", "8x8x8"),
        ),
        Generation(
            name="v6e", axes=2, largest=16, devices=1, host=(2, 2, 1),
            examples=("1x1", "2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16"),
        ),
        Generation(
            name="tpu7x", axes=3, largest=24, devices=2, host=(2, 2, 1),
            examples=("1x1x1", "2x2x1", "2x2x2", "2x2x4", "2x4x4", "4x4x4", "4x4x8", "8x8x8"),
        ),
    )
}  # fmt: skip
"""By name. Sizes are those of cloud.google.com/tpu/docs (system architecture); how many devices
jax sees was asked of libtpu itself, 0.0.11 and 0.0.50: both take every example, but the older
does not know tpu7x."""


def tpu_topology(model: str, layout: str) -> tuple[Mapping[str, Any], int]:
    """Return what libtpu must be asked for, and how many devices there are.

    Args:
        model: Name of a generation, e.g. `v5e`.
        layout: Chips along each axis, e.g. `2x2` or `4x4x4`.

    Returns:
        Arguments of `get_topology_desc`, and the number of devices.

    Raises:
        UsageError: If the generation is unknown, or has no such topology.
    """
    where = f"platform 'tpu:{model}:{layout}'"
    generation = GENERATIONS.get(model)
    if generation is None:
        raise UsageError(
            f"{where}: unknown TPU generation {model!r}{did_you_mean(model, GENERATIONS)}; "
            f"expected one of {', '.join(GENERATIONS)}"
        )
    problem = f"{where}: {model} has no topology {layout}"
    examples = f"expected e.g. {', '.join(generation.examples)}"
    if not _LAYOUT.fullmatch(layout):
        raise UsageError(f"{problem}; {examples}")
    sizes = [int(size) for size in layout.split("x")]
    if len(sizes) != generation.axes:
        raise UsageError(f"{problem}: its chips lie along {generation.axes} axes; {examples}")
    if max(sizes) > generation.largest:
        raise UsageError(f"{problem}: an axis has 1 to {generation.largest} chips; {examples}")
    alone = layout in generation.examples and prod(sizes) == 1
    host = (1, 1, 1) if alone else generation.host
    if any(size % chips for size, chips in zip(sizes, host, strict=False)):
        raise UsageError(f"{problem}: its hosts have 2x2 chips each; {examples}")
    if any(size not in _SHORT and size % _CUBE for size in sizes):
        raise UsageError(f"{problem}: an axis has 1, 2 or a multiple of 4 chips; {examples}")
    options = dict(generation.options)
    if host != generation.host:
        options["chips_per_host_bounds"] = list(host)
    asked = {"platform": "tpu", "topology_name": f"{model}:{layout}", **options}
    return asked, prod(sizes) * generation.devices
