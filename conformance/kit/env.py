"""The environment of a case: the cell, its devices and meshes, and compatible spellings of jax."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, NoReturn

import jax
import numpy as np
from jax.experimental import topologies

from conformance.kit import compat, distributed
from conformance.kit.case import Unsupported

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NO_MEMORY = "can address the following memory kinds: . "
"""Part of the message of jax for a device that has no memories."""
_ADDRESS = re.compile(r"0x[0-9a-f]{4,}")
_FOLDER = re.compile(r"(?<!\S)/(?:[^\s/]+/)+")


@dataclass(frozen=True)
class CellInfo:
    """The cell, as visible to a case.

    Attributes:
        id: Cell id, e.g. `jax0.6.0-py311-cpu8`.
        release: jax release.
        platform: Platform, e.g. `cpu`.
        versions: Version of every installed package.
        topology: Arguments of `jax.experimental.topologies.get_topology_desc` if the platform is
            compile-only, else empty.
    """

    id: str
    release: str
    platform: str
    versions: Mapping[str, str] = field(default_factory=dict)
    topology: Mapping[str, Any] = field(default_factory=dict)


class Env:
    """The argument `env` of every case.

    Attributes:
        cell: Cell of the job.
        compat: Functions that are spelled differently across releases: shard_map, pvary,
            make_mesh ...
    """

    def __init__(self, cell: CellInfo) -> None:
        self.cell = cell
        self.compat = compat
        # With each description itself: otherwise the id of one that was freed could be used again.
        self._described: dict[int, tuple[Any, Any]] = {}

    @property
    def compile_only(self) -> bool:
        """Whether programs are compiled and never run, because the devices are descriptions."""
        return bool(self.cell.topology)

    @cached_property
    def devices(self) -> list[Any]:
        """Devices of the cell's platform, by id.

        Raises:
            Unsupported: If the installed release cannot compile for the platform.
        """
        found = get_topology_devices(self.cell.topology) if self.compile_only else jax.devices()
        return sorted(found, key=lambda device: device.id)

    def mesh(
        self, shape: int | Sequence[int], names: str | Sequence[str], *, explicit: bool = False
    ) -> Any:
        """Return a mesh over the first devices.

        Args:
            shape: Size of the only axis, or of each axis.
            names: Name of the only axis, or of each axis.
            explicit: Whether axis types are Explicit; Auto otherwise, on every release.

        Returns:
            A `jax.sharding.Mesh`.

        Raises:
            ValueError: If the mesh needs more devices than the cell has.
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
        """Return an argument of a program with a sharding.

        Args:
            value: NumPy array.
            sharding: A `jax.sharding.Sharding` over devices of the cell.

        Returns:
            An array, of which each rank holds its part; on a compile-only platform a
            `ShapeDtypeStruct`.
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
        """Return arguments of a program with the values that were given to `put`.

        Args:
            tree: Any pytree.
        """
        # By identity: descriptions of equal shape may have different values.
        known = self._described
        return jax.tree_util.tree_map(lambda leaf: known.get(id(leaf), (leaf, leaf))[1], tree)

    def lower(self, traced: Any) -> Any:
        """Return a traced program lowered for the cell's devices.

        Args:
            traced: Result of `jax.jit(f).trace(...)`. On a compile-only platform a program without
                meshes and shardings is lowered for the first device.
        """
        if not self.compile_only:
            return traced.lower()
        # Without shardings a program would be lowered for the default backend, the CPU.
        with jax.default_device(self.devices[0]):
            return traced.lower()

    def compile(self, lowered: Any, options: Mapping[str, Any] | None = None) -> Any:
        """Return a lowered program compiled.

        Args:
            lowered: Result of `lower`.
            options: Compiler options, as `compile(compiler_options=...)` takes them.

        Raises:
            Unsupported: If jax cannot determine the memory of the results. For one device of a
                CUDA topology, 0.8.2 and 0.8.3 look for a memory that such a device lacks.
        """
        try:
            return lowered.compile(compiler_options=options) if options else lowered.compile()
        except ValueError as error:
            if self.compile_only and NO_MEMORY in str(error):
                raise Unsupported(f"jax cannot describe the results: {error}") from error
            raise

    def try_compiling(self) -> None:
        """Compile a small program: some releases only describe the devices of a topology.

        Raises:
            Unsupported: If it cannot be compiled for the cell's topology.
        """
        # Over two devices if possible: CUDA 0.8.2 and 0.8.3 refuse programs of one device.
        mesh = self.mesh(min(2, len(self.devices)), "x")
        spread = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
        traced = jax.jit(jax.numpy.sin).trace(self.put(np.ones(8, np.float32), spread))
        try:
            self.lower(traced).compile()
        except Unsupported:
            raise
        except Exception as error:
            raise make_unsupported(self.cell.topology, error) from error

    def rng(self, seed: int = 0) -> np.random.Generator:
        """Return a NumPy generator with the same stream on every host and NumPy release."""
        # Not `default_rng`: a NumPy release may give it another bit generator.
        return np.random.Generator(np.random.PCG64(seed))

    def unsupported(self, reason: str) -> NoReturn:
        """End the case with the outcome `unsupported`, because the cell cannot express it.

        Raises:
            Unsupported: Always.
        """
        raise Unsupported(reason)


def get_topology_devices(topology: Mapping[str, Any]) -> list[Any]:
    """Return the devices of a topology.

    Args:
        topology: Arguments of `jax.experimental.topologies.get_topology_desc`.

    Raises:
        Unsupported: If the plugin does not know the topology, or the release has no plugin.
    """
    try:
        return list(topologies.get_topology_desc(**topology).devices)
    except Exception as error:
        raise make_unsupported(topology, error) from error


def make_unsupported(topology: Mapping[str, Any], error: Exception) -> Unsupported:
    """Return the exception for a topology that a release cannot compile for.

    Args:
        topology: Arguments of `jax.experimental.topologies.get_topology_desc`.
        error: Exception raised by the release.
    """
    # Without addresses and folders, so that the reason is the same on every host.
    message = " ".join(_ADDRESS.sub("0x...", _FOLDER.sub("", str(error))).split())
    name = f"{topology['platform']} {topology['topology_name']}"
    return Unsupported(f"{name} cannot be compiled for: {type(error).__name__}: {message}")
