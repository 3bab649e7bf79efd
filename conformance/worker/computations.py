"""Records the computations that JAX compiles and runs, so that another release can repeat them.

Everything goes to one folder: `computations.jsonl` has a line for each call, in order, and `blobs`
has modules, jaxprs and the data of arrays by the SHA-256 of their content. A line is written when
the call has ended, or when its compilation fails.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax._src import api, compiler, pjit
from jax._src.interpreters import mlir, pxla

from conformance.worker.jaxprs import encode_jaxpr

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

COMPUTATIONS = "computations.jsonl"
BLOBS = "blobs"
MOST_CALLS = 2000
MOST_BYTES = 256 * 2**20
"""Limits of a recording; a line `{"truncated": REASON}` ends one that exceeds them."""
TEXT = "text"
"""Key of a module's text among its artifacts, which are named by versions."""
HELD = "holds more than the host: tokens, callbacks or side effects"
MUTABLE = "writes to mutable references"
REMOTE = "spans processes"
UNREADABLE = "has arrays that cannot be copied to the host"


def find_portable_writer() -> Any:
    """Return jaxlib's module of functions for portable artifacts, None if it has none."""
    from jaxlib import xla_client

    # `jaxlib._jax` from 0.6.1, `xla_client._xla` before.
    inner = getattr(xla_client, "_xla", None) or importlib.import_module("jaxlib._jax")
    found = getattr(inner, "mlir", None)
    return found if hasattr(found, "serialize_portable_artifact") else None


def get_stablehlo_version() -> str:
    """Return the version of StableHLO that this release reads and writes, e.g. `1.11.0`."""
    from jaxlib.mlir.dialects import stablehlo

    return str(stablehlo.get_current_version())


def write_portable(module: Any, version: str) -> bytes:
    """Return a module as a portable artifact.

    Args:
        module: The module, as jax hands it to the compiler.
        version: Version of StableHLO that its reader has.

    Raises:
        Exception: If the version lacks an operation, or jaxlib cannot write it.
    """
    writer = find_portable_writer()
    if writer is None:
        raise ValueError("this jaxlib cannot write portable artifacts")
    target = min(version, get_stablehlo_version(), key=_parse_version)
    try:
        # A module object is accepted from 0.10.2 on, its bytecode before.
        return bytes(writer.serialize_portable_artifact(mlir.module_to_bytecode(module), target))
    except TypeError:
        return bytes(writer.serialize_portable_artifact(module, target))


def render_module(module: Any) -> str:
    """Return the generic text of a module, which other releases are most likely to read.

    Args:
        module: The module.
    """
    return str(module.operation.get_asm(print_generic_op_form=True, large_elements_limit=None))


def _parse_version(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


class _Compiled:
    """A compiled module, with everything that its calls have in common."""

    def __init__(self, executable: Any, line: dict[str, Any]) -> None:
        # Held, so that no other executable gets its id.
        self.executable = executable
        self.line = line


class ComputationRecorder:
    """Records every call of an executable in this process, once installed.

    Args:
        folder: Folder of the recording; created if missing.
        versions: Versions of StableHLO in which modules are written.
        compile_only: Whether nothing is called: then each compilation is a line.
    """

    def __init__(
        self, folder: Path, versions: Iterable[str], *, compile_only: bool = False
    ) -> None:
        self._folder = folder
        self._versions = tuple(versions)
        self._compile_only = compile_only
        self._compiled: dict[int, _Compiled] = {}
        self._jaxprs: dict[int, tuple[Any, str]] = {}
        self._count = 0
        self._bytes = 0
        self._stopped = False
        self._lock = threading.Lock()
        (folder / BLOBS).mkdir(parents=True, exist_ok=True)

    def install(self) -> None:
        """Replace the functions through which jax lowers, compiles and calls."""
        lower, compile_ = mlir.lower_jaxpr_to_module, compiler.compile_or_get_cached
        call = pxla.ExecuteReplicated.__call__

        def lower_jaxpr_to_module(name: Any, jaxpr: Any, *args: Any, **more: Any) -> Any:
            result = lower(name, jaxpr, *args, **more)
            self._keep_jaxpr(getattr(result, "module", None), jaxpr)
            return result

        def compile_or_get_cached(backend: Any, module: Any, *args: Any, **more: Any) -> Any:
            line = self._describe(module, args, more)
            try:
                executable = compile_(backend, module, *args, **more)
            except Exception as error:
                self._write({**line, "error": describe_error(error, "compile")})
                raise
            if self._compile_only:
                self._write({**line, "error": None})
            self._compiled[id(executable)] = _Compiled(executable, line)
            return executable

        def call_and_record(executable: Any, *args: Any) -> Any:
            return self._record(call, executable, args)

        mlir.lower_jaxpr_to_module = lower_jaxpr_to_module
        compiler.compile_or_get_cached = compile_or_get_cached
        pxla.ExecuteReplicated.__call__ = call_and_record
        # From the second call on the C++ fast paths would skip all of this.
        pjit._get_fastpath_data = lambda *_, **__: None
        pxla.MeshExecutable.create_cpp_call = lambda *_, **__: None
        # Up to 0.9.2, `pmap` has a fast path of its own.
        api._PmapFastpathData = lambda *_, **__: None
        jax.config.update("jax_enable_compilation_cache", False)

    def _keep_jaxpr(self, module: Any, jaxpr: Any) -> None:
        try:
            text = encode_jaxpr(jaxpr)
        except Exception:  # of a kind that no job has, e.g. in a library's own lowering
            return
        if module is not None:
            self._jaxprs[id(module)] = module, self._store(text.encode())

    def _describe(self, module: Any, args: Sequence[Any], more: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a module that all of its calls share."""
        options = next(
            value for value in (*args, *more.values()) if hasattr(value, "executable_build_options")
        )
        # Positional up to 0.12: devices, options, callbacks.
        _, _, callbacks, *_ = (*args, None, None, None)
        callbacks = more.get("host_callbacks") or callbacks
        modules, problems = {}, {}
        for version in self._versions:
            try:
                modules[version] = self._store(write_portable(module, version))
            except Exception as error:
                problems[version] = str(error).strip().partition("\n")[0]
        # The writer of artifacts expands some operations (CHLO, complex functions), which is the
        # compiler's part: a release that can read the text repeats that.
        modules[TEXT] = self._store(render_module(module).encode())
        _, jaxpr = self._jaxprs.get(id(module), (None, ""))
        return {
            "name": str(module.operation.attributes["sym_name"]).strip('"'),
            "modules": modules,
            "problems": problems,
            "jaxpr": jaxpr,
            "options": describe_options(options, args[0] if args else more.get("devices")),
            "reasons": [HELD] if callbacks else [],
        }

    def _record(self, call: Callable[..., Any], executable: Any, args: Sequence[Any]) -> Any:
        compiled = self._compiled.get(id(executable.xla_executable))
        if self._stopped or compiled is None:
            return call(executable, *args)
        reasons = [*compiled.line["reasons"], *find_reasons(executable)]
        line = {**compiled.line, "reasons": list(dict.fromkeys(reasons))}
        # Copied before the call, which may donate them.
        inputs = self._describe_arrays(line, lambda: _place(executable, args))
        try:
            outputs = call(executable, *args)
            jax.block_until_ready(outputs)
        except Exception as error:
            self._write({**line, "inputs": inputs, "error": describe_error(error, "execute")})
            raise
        described = self._describe_arrays(line, lambda: outputs)
        self._write({**line, "inputs": inputs, "outputs": described, "error": None})
        return outputs

    def _describe_arrays(
        self, line: dict[str, Any], get: Callable[[], Iterable[Any]]
    ) -> list[dict[str, Any]]:
        """Return arrays as plain data; none, with a reason in `line`, if they cannot be read.

        The program goes on as without a recorder, whose own transfers no guard forbids.
        """
        if line["reasons"]:
            return []
        try:
            with jax.transfer_guard("allow"):
                return [self._describe_array(array) for array in get()]
        except Exception as error:
            first = str(error).strip().partition("\n")[0]
            line["reasons"] = [f"{UNREADABLE}: {first}"]
            return []

    def _describe_array(self, array: Any) -> dict[str, Any]:
        # The physical array of typed keys.
        array = getattr(array, "_base_array", array)
        shards = array.addressable_shards
        return {
            "shape": list(shards[0].data.shape),
            "dtype": str(array.dtype),
            "shards": [self._store(np.asarray(shard.data).tobytes()) for shard in shards],
        }

    def _store(self, content: bytes) -> str:
        digest = hashlib.sha256(content).hexdigest()
        path = self._folder / BLOBS / digest
        if not path.exists():
            self._bytes += len(content)
            path.write_bytes(content)
        return digest

    def _write(self, line: dict[str, Any]) -> None:
        with self._lock:
            if self._stopped:
                return
            self._count += 1
            if self._count > MOST_CALLS or self._bytes > MOST_BYTES:
                self._stopped = True
                limit = f"{MOST_CALLS} calls or {MOST_BYTES >> 20} MiB"
                line = {"truncated": f"more than {limit}"}
            text = json.dumps({"number": self._count, **line}) + "\n"
            # One write for each line: processes of one program do not mix theirs.
            out = os.open(
                self._folder / COMPUTATIONS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600
            )
            try:
                os.write(out, text.encode())
            finally:
                os.close(out)


def _place(executable: Any, args: Sequence[Any]) -> Iterable[Any]:
    """Return the arguments that an executable reads, as it places them on its devices."""
    kept = [arg for n, arg in enumerate(args) if n in executable.kept_var_idx]
    placed: Iterable[Any] = executable.in_handler(kept)
    return placed


def find_reasons(executable: Any) -> list[str]:
    """Return why the calls of an executable cannot be repeated elsewhere; empty if they can.

    Args:
        executable: The object through which jax calls it.
    """
    held = (
        executable.ordered_effects
        or executable.has_unordered_effects
        or executable.has_host_callbacks
    )
    reasons = [HELD] if held else []
    if getattr(executable, "mut", None):
        reasons.append(MUTABLE)
    if jax.process_count() > 1:
        reasons.append(REMOTE)
    return reasons


def describe_options(options: Any, devices: Any) -> dict[str, Any]:
    """Return the options of a compilation that jax itself sets, by name.

    Flags of XLA are those of the process: each release has its own defaults.

    Args:
        options: The options, as jax hands them to the compiler.
        devices: The devices of the computation.
    """
    build = options.executable_build_options
    ids = [device.id for device in np.asarray(devices, dtype=object).flat]
    return {
        "replicas": options.num_replicas,
        "partitions": options.num_partitions,
        "devices": ids,
        "spmd": bool(getattr(build, "use_spmd_partitioning", False)),
        "auto_spmd": bool(getattr(build, "use_auto_spmd_partitioning", False)),
        "shardy": bool(getattr(build, "use_shardy_partitioner", False)),
        "to_parameters": _read_flags(build, "allow_spmd_sharding_propagation_to_parameters"),
        "to_outputs": _read_flags(build, "allow_spmd_sharding_propagation_to_output"),
        "overrides": dict(getattr(options, "env_option_overrides", ())),
    }


def _read_flags(build: Any, name: str) -> list[bool]:
    return [bool(flag) for flag in getattr(build, name, ())]


def describe_error(error: BaseException, stage: str) -> dict[str, str]:
    """Return an error of the compiler or the runtime as plain data.

    Args:
        error: The error.
        stage: `compile` or `execute`.
    """
    return {"type": type(error).__name__, "message": str(error)[:20_000], "stage": stage}


def install_from_setting(setting: str) -> None:
    """Install a recorder in the process of a program.

    Args:
        setting: The folder of the recording, then versions of StableHLO, joined by colons.
    """
    folder, *versions = setting.split(":")
    ComputationRecorder(Path(folder), versions).install()
