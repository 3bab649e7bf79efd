"""What a case is handed: the cell, its devices and meshes, one spelling of jax."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, NoReturn

import jax
import numpy as np

from conformance.kit import compat, distributed
from conformance.kit.case import Unsupported
from conformance.kit.topology import refused, topology_devices

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NO_MEMORY = "can address the following memory kinds: . "
"""Of the message of a device that has no memories."""


@dataclass(frozen=True)
class CellInfo:
    """The cell as a case may see it.

    Attributes:
        id: Cell id, e.g. `jax0.6.0-py311-cpu8`.
        release: jax release.
        platform: Platform, e.g. `cpu`.
        versions: Version of every installed package.
        topology: What is compiled for when the devices are not here, as
            `jax.experimental.topologies.get_topology_desc` takes it; empty where they are.
    """

    id: str
    release: str
    platform: str
    versions: Mapping[str, str] = field(default_factory=dict)
    topology: Mapping[str, Any] = field(default_factory=dict)


class Env:
    """Handed to every case as `env`.

    Attributes:
        cell: The cell the case runs in.
        compat: One spelling of shard_map, pvary, make_mesh ... across releases.
    """

    def __init__(self, cell: CellInfo) -> None:
        self.cell = cell
        self.compat = compat
        self._described: dict[int, tuple[Any, Any]] = {}

    @property
    def compile_only(self) -> bool:
        """Whether programs are compiled here and never run: the devices are descriptions."""
        return bool(self.cell.topology)

    @cached_property
    def devices(self) -> list[Any]:
        """Devices of the cell's platform, by id.

        Raises:
            Unsupported: If the installed release cannot compile for the platform.
        """
        found = topology_devices(self.cell.topology) if self.compile_only else jax.devices()
        return sorted(found, key=lambda device: device.id)

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

    def put(self, value: Any, sharding: Any) -> Any:
        """Return an argument of a program, placed.

        Args:
            value: A NumPy array.
            sharding: A `jax.sharding.Sharding` over devices of the cell.

        Returns:
            An array; where programs are compiled only, its shape, dtype and sharding. Among ranks
            each holds its part.
        """
        if self.compile_only:
            array = np.asarray(value)
            dtype = jax.dtypes.canonicalize_dtype(array.dtype)
            described = jax.ShapeDtypeStruct(array.shape, dtype, sharding=sharding)
            self._described[id(described)] = (described, array.astype(dtype))
            return described
        if not sharding.is_fully_addressable:
            spread = distributed.spread(value, sharding)
            self._described[id(spread)] = (spread, np.asarray(value).astype(spread.dtype))
            return spread
        return jax.device_put(value, sharding)

    def values(self, tree: Any) -> Any:
        """Return arguments of a program with their values: what `put` described is what it got.

        Args:
            tree: Any pytree.
        """
        known = self._described
        return jax.tree_util.tree_map(lambda leaf: known.get(id(leaf), (leaf, leaf))[1], tree)

    def lower(self, traced: Any) -> Any:
        """Return a traced program lowered for the cell's devices.

        Args:
            traced: What `jax.jit(f).trace(...)` returned. Where programs are compiled only, one
                that names no devices by its meshes and arguments is lowered for the first.
        """
        if not self.compile_only:
            return traced.lower()
        with jax.default_device(self.devices[0]):
            return traced.lower()

    def compile(self, lowered: Any, options: Mapping[str, Any] | None = None) -> Any:
        """Return a lowered program compiled.

        Args:
            lowered: What `lower` returned.
            options: Compiler options, as `compile(compiler_options=...)` takes them.

        Raises:
            Unsupported: If jax cannot say where the results lie: for one device of a CUDA
                topology 0.8.2 and 0.8.3 look for a memory that such a device has not.
        """
        try:
            return lowered.compile(compiler_options=options) if options else lowered.compile()
        except ValueError as error:
            if self.compile_only and NO_MEMORY in str(error):
                raise Unsupported(f"compiled, but not described: {error}") from error
            raise

    def try_compiling(self) -> None:
        """Compile a program of one operation: some releases describe devices, and that is all.

        Over two devices where there are two: CUDA 0.8.2 and 0.8.3 refuse programs of one.

        Raises:
            Unsupported: If not even that can be compiled for the cell's topology.
        """
        mesh = self.mesh(min(2, len(self.devices)), "x")
        spread = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
        traced = jax.jit(jax.numpy.sin).trace(self.put(np.ones(8, np.float32), spread))
        try:
            self.lower(traced).compile()
        except Unsupported:
            raise
        except Exception as error:
            raise refused(self.cell.topology, error) from error

    def rng(self, seed: int = 0) -> np.random.Generator:
        """Return a NumPy generator whose stream is the same on every host and NumPy release."""
        return np.random.Generator(np.random.PCG64(seed))

    def unsupported(self, reason: str) -> NoReturn:
        """End the case: the cell cannot express it. The outcome is `unsupported`, with the reason.

        Raises:
            Unsupported: Always.
        """
        raise Unsupported(reason)
