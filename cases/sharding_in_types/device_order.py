"""The order in which `create_device_mesh` lays out the devices of a slice, on stand-ins for them.

A program that names devices by their place in the mesh, or loads a checkpoint by shard, depends
on it. `jax.make_mesh` has the same order.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from jax.experimental.mesh_utils import create_device_mesh

from conformance.kit import Observed, defaults, deviation, probe

defaults(platforms=("cpu",))


@dataclass(frozen=True)
class Device:
    """A stand-in for a device, with the attributes that `create_device_mesh` reads."""

    id: int
    device_kind: str
    platform: str
    coords: tuple[int, ...] = ()
    core_on_chip: int = 0


def chips(kind, columns, rows, layers=1, cores=1):
    """Return stand-ins for the devices of a TPU slice, numbered core by core, column by column."""
    places = itertools.product(range(layers), range(rows), range(columns), range(cores))
    return [
        Device(number, kind, "tpu", (column, row, layer), core)
        for number, (layer, row, column, core) in enumerate(places)
    ]


def processes(*numbers):
    """Return stand-ins for GPUs, one process after the other."""
    return [Device(number, "H100", "gpu") for number in numbers]


RING = [0, 1, 2, 3, 7, 6, 5, 4]
CUBE_RING = [0, 1, 3, 2, 6, 7, 5, 4]
SLICES = {
    "v5e_tray": (lambda: chips("TPU v5 lite", 4, 2), RING),
    "v5e_cube": (lambda: chips("TPU v5 lite", 2, 2, 2), [0, 4, 2, 6, 1, 5, 3, 7]),
    "v5p_cube": (lambda: chips("TPU v5p", 2, 2, 2), CUBE_RING),
    "v5_cube": (lambda: chips("TPU v5", 2, 2, 2), CUBE_RING),
    "v6e_tray": (lambda: chips("TPU v6 lite", 4, 2), RING),
    "v7_tray": (lambda: chips("TPU7x", 2, 2, cores=2), [0, 1, 2, 3, 6, 7, 4, 5]),
    "gpus": (lambda: processes(3, 1, 0, 2), [0, 1, 2, 3]),
}
V5E_BY_COLUMNS = deviation(
    "jax<0.4.33",
    params=["v5e_tray"],
    outcome="ok",
    reason="the devices were numbered column by column",
    issue="jax-ml/jax@d6c36255e832",
)
CUBE_AS_A_TRAY = deviation(
    "jax>=0.4.33,<0.4.35",
    params=["v5e_cube"],
    outcome="ok",
    reason="eight devices counted as a tray of 4x2",
    issue="jax-ml/jax@5e03a573bcc1",
)
V5P_BY_COLUMNS = deviation(
    "jax<0.4.36",
    params=["v5p_cube"],
    outcome="ok",
    reason="the devices were numbered column by column",
    issue="jax-ml/jax@54e72d505413",
)
V5_BY_COLUMNS = deviation(
    "jax<0.11.1",
    params=["v5_cube"],
    outcome="ok",
    reason="TPU v5 was not known as another name of v5p",
    issue="jax-ml/jax@e8a2ce0822da",
)
V6E_BY_COLUMNS = deviation(
    "jax<0.6.1",
    params=["v6e_tray"],
    outcome="ok",
    reason="the devices were numbered column by column",
    issue="jax-ml/jax@50b4654645d9",
)
ONE_CORE_EXPECTED = deviation(
    "jax<0.7.1",
    params=["v7_tray"],
    error="AssertionError",
    match="one device per chip",
    reason="a chip of two devices was expected to be of TPU v2 or v3",
    issue="jax-ml/jax@e62b4ab161a4",
)
V7_AS_V5E = deviation(
    "jax>=0.7.1,<0.8",
    params=["v7_tray"],
    outcome="ok",
    reason="the ring was that of a tray of 4x2",
    issue="jax-ml/jax@4997988bc762",
)
GPUS_BY_PROCESS = deviation(
    "jax<0.10.2",
    params=["gpus"],
    outcome="ok",
    reason="the devices kept the order of the processes",
    issue="jax-ml/jax@f8b218897b6a",
)


@probe(
    source="jax-ml/jax@d6c36255e832",
    params=[*SLICES],
    deviations=[
        V5E_BY_COLUMNS,
        CUBE_AS_A_TRAY,
        V5P_BY_COLUMNS,
        V5_BY_COLUMNS,
        V6E_BY_COLUMNS,
        ONE_CORE_EXPECTED,
        V7_AS_V5E,
        GPUS_BY_PROCESS,
    ],
)
def device_order(env, name):
    """The numbers of the devices along a mesh with a single axis."""
    devices, order = SLICES[name]
    mesh = create_device_mesh((len(order),), devices())
    return Observed([device.id for device in mesh], reference=order)


COORDINATES_FROM_ZERO = deviation(
    "jax<0.4.33",
    error="NotImplementedError",
    match="Failed to find assignment",
    reason="the coordinates of a slice had to begin at 0",
    issue="jax-ml/jax@5c9bb612a775",
)


@probe(source="jax-ml/jax@5c9bb612a775", deviations=[COORDINATES_FROM_ZERO])
def half_of_a_slice(env):
    """A mesh of the devices of a slice whose first column is 2; before 0.4.33 it was refused."""
    half = [device for device in chips("TPU v4", 4, 2, 2) if device.coords[0] >= 2]
    numbers = [[device.id for device in row] for row in create_device_mesh((2, 4), half)]
    return Observed(numbers, reference=[[2, 6, 3, 7], [10, 14, 11, 15]])


COMPOSITE_AS_A_PRIME = deviation(
    "jax<0.11.1",
    error="TypeError",
    match="NoneType",
    reason="14 counted as a prime number",
    issue="jax-ml/jax#38286",
)


@probe(source="jax-ml/jax#38286", deviations=[COMPOSITE_AS_A_PRIME])
def split_of_fourteen_columns(env):
    """A mesh of 7x4 of 14x2 devices, with `allow_split_physical_axes`; before, a TypeError."""
    devices = chips("TPU v4", 14, 2)
    mesh = create_device_mesh((7, 4), devices, allow_split_physical_axes=True)
    numbers = [sorted(device.id for device in row) for row in mesh]
    return Observed(numbers, [[n, n + 1, n + 14, n + 15] for n in range(0, 14, 2)])
