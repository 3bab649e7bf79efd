"""What a case is handed: the cell, its devices and meshes, one spelling of jax."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any, NoReturn

import jax
import numpy as np

from conformance.kit import compat
from conformance.kit.case import Unsupported

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class CellInfo:
    """The cell as a case may see it.

    Attributes:
        id: Cell id, e.g. `jax0.6.0-py311-cpu8`.
        release: jax release.
        platform: Platform, e.g. `cpu`.
        versions: Version of every installed package.
    """

    id: str
    release: str
    platform: str
    versions: Mapping[str, str] = field(default_factory=dict)


class Env:
    """Handed to every case as `env`.

    Attributes:
        cell: The cell the case runs in.
        compat: One spelling of shard_map, pvary, make_mesh ... across releases.
    """

    def __init__(self, cell: CellInfo) -> None:
        self.cell = cell
        self.compat = compat

    @property
    def devices(self) -> list[Any]:
        """Devices of the cell's platform, by id."""
        return sorted(jax.devices(), key=lambda device: device.id)

    def mesh(
        self, shape: int | Sequence[int], names: str | Sequence[str], *, explicit: bool = False
    ) -> Any:
        """Return a mesh over the first devices.

        Args:
            shape: Size of the axis, or of each axis.
            names: Name of the axis, or of each.
            explicit: Whether axis types are Explicit; Auto otherwise, on every release.

        Returns:
            A `jax.sharding.Mesh`.

        Raises:
            ValueError: If the mesh needs more devices than there are.
        """
        sizes = (shape,) if isinstance(shape, int) else tuple(shape)
        axes = (names,) if isinstance(names, str) else tuple(names)
        count, devices = prod(sizes), self.devices
        if count > len(devices):
            raise ValueError(
                f"a mesh of {sizes} needs {count} devices, got {len(devices)}: "
                f"raise `devices=` of the case"
            )
        return compat.make_mesh(sizes, axes, devices=np.array(devices[:count]), explicit=explicit)

    def rng(self, seed: int = 0) -> np.random.Generator:
        """Return a NumPy generator whose stream is the same on every host and NumPy release."""
        return np.random.Generator(np.random.PCG64(seed))

    def unsupported(self, reason: str) -> NoReturn:
        """End the case: the cell cannot express it. The outcome is `unsupported`, with the reason.

        Raises:
            Unsupported: Always.
        """
        raise Unsupported(reason)
