"""Compiles a portable StableHLO module of another release with this release's XLA."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import re
from typing import TYPE_CHECKING, Any

import numpy as np
from jax._src import compiler
from jax._src.interpreters import mlir
from jax._src.lib import xla_client

from conformance.worker.instrumentation import recording_format as form

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_LACKS = re.compile(
    r"No (?:registered implementation|FFI handler registered) for .*"
    r"|.*op can't be translated to XLA HLO|.*unregistered operation .*|Failed to deserialize .*"
)
"""Messages for a module that needs an operation or a kernel that this release does not have."""


def find_lack(error: Exception) -> str:
    """Return what of a module this release lacks, empty if the error has another cause.

    Args:
        error: Error of a compilation or an execution.
    """
    found = _LACKS.search(str(error))
    return f"this release lacks a part of the module: {found[0].strip()}" if found else ""


def load_kernels() -> None:
    """Load the kernels that modules call by name.

    jax loads the functions of LAPACK when it lowers a program that needs them. A module that was
    lowered elsewhere would make XLA call an address that is not set.
    """
    with contextlib.suppress(ImportError):
        importlib.import_module("jaxlib.lapack")
    with contextlib.suppress(ImportError):
        importlib.import_module("jaxlib.cpu._lapack").initialize()


class PortableModule:
    """A portable module with the interface of a lowered program, as far as `capture` uses it.

    Args:
        artifact: The module, as `recording_format.write_portable` returns it.
        options: Options of its recorded compilation.
        devices: Devices of this process, in the order of the device assignment.
    """

    def __init__(self, artifact: bytes, options: Mapping[str, Any], devices: Sequence[Any]) -> None:
        self._artifact = artifact
        self._options = options
        self._devices = devices

    def compile(self, compiler_options: Mapping[str, Any] | None = None) -> CompiledModule:
        """Return the compiled module.

        Args:
            compiler_options: Compiler options in addition to those of the recording.

        Raises:
            Exception: If this release cannot read the artifact, or XLA refuses it.
        """
        shape = self._options["replicas"], self._options["partitions"]
        devices = np.asarray(self._devices, dtype=object).reshape(shape)
        backend = self._devices[0].client
        options = make_compile_options(backend, self._options, devices, compiler_options or {})
        arguments: dict[str, Any] = {
            "backend": backend, "devices": devices, "compile_options": options,
            "host_callbacks": [],
        }  # fmt: skip
        # Releases from 0.6.1 need them in addition.
        if "executable_devices" in inspect.signature(compiler.compile_or_get_cached).parameters:
            arguments["executable_devices"] = xla_client.DeviceList(tuple(self._devices))
        with mlir.make_ir_context():
            module = form.read_portable(self._artifact)
            return CompiledModule(compiler.compile_or_get_cached(computation=module, **arguments))


class CompiledModule:
    """An executable with the interface of a compiled program, as far as `capture` uses it.

    Args:
        executable: The executable.
    """

    def __init__(self, executable: Any) -> None:
        self._executable = executable

    def runtime_executable(self) -> Any:
        """Return the executable."""
        return self._executable

    def as_text(self) -> str | None:
        """Return the optimised HLO, None if the backend hides it."""
        try:
            return "\n\n".join(module.to_string() for module in self._executable.hlo_modules())
        except Exception as error:
            # A topology of CUDA, 0.4.38 to 0.8.1; `as_text` of jax returns None, too.
            if "UNIMPLEMENTED" in str(error):
                return None
            raise


def make_compile_options(
    backend: Any,
    recorded: Mapping[str, Any],
    devices: np.ndarray,
    overrides: Mapping[str, Any],
) -> Any:
    """Return the options of a compilation as this release spells them.

    Args:
        backend: Client that compiles.
        recorded: Options of the recorded compilation.
        devices: Devices by replica and partition.
        overrides: Compiler options in addition to those of the recording.
    """
    wanted = {
        "num_replicas": recorded["replicas"],
        "num_partitions": recorded["partitions"],
        "device_assignment": devices,
        "use_spmd_partitioning": recorded["spmd"],
        "env_options_overrides": {**dict(recorded["overrides"]), **overrides},
        "backend": backend,
    }
    # XLA partitions always from 0.10.0 on: there is no option.
    known = inspect.signature(compiler.get_compile_options).parameters
    options = compiler.get_compile_options(**{k: v for k, v in wanted.items() if k in known})
    options.parameter_is_tupled_arguments = recorded["tupled"]
    build = options.executable_build_options
    if hasattr(build, "use_shardy_partitioner"):  # from 0.4.33 on
        build.use_shardy_partitioner = recorded["shardy"]
    setattr(build, f"{form.PROPAGATION}parameters", recorded["to_parameters"])
    setattr(build, f"{form.PROPAGATION}output", recorded["to_outputs"])
    return options
