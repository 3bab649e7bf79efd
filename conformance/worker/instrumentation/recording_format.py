"""Format of a recording: portable modules, options of compilations, array data.

Recorder and replay share it. It is imported in user scripts, where the rest of the package may be
another version, and imports nothing of it.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import re
import threading
from functools import cache
from typing import TYPE_CHECKING, Any

from jax._src.interpreters import mlir
from jax._src.lib import xla_client
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    import numpy as np

COMPUTATIONS = "computations.jsonl"
BLOBS = "blobs"
MARK = b"xla.sdy"
"""Prefix of the attributes and custom calls that have the shardings of Shardy in an artifact."""
PROPAGATION = "allow_spmd_sharding_propagation_to_"
"""Prefix of the build options that let XLA choose shardings of parameters and results."""
MANUAL = b"xla.sdy.GlobalToLocalShape"
"""Custom call at which a shard_map begins in an artifact."""
_MANUAL_PROGRAM = """
module {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg: tensor<2xf32>) -> tensor<2xf32> {
    %result = sdy.manual_computation(%arg)
      in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"}
      (%shard: tensor<1xf32>) { sdy.return %shard : tensor<1xf32> }
      : (tensor<2xf32>) -> tensor<2xf32>
    return %result : tensor<2xf32>
  }
}
"""
_ON_CUSTOM_CALL = re.compile(rf"@{MANUAL.decode()}\(.*xla\.sdy\.in_shardings")
EMPTY_LINE: dict[str, Any] = {
    "number": 0,
    "name": "",
    "stage": "",
    "modules": {},
    "unwritten": {},
    "shardy": "",
    "jaxpr": None,
    "options": None,
    "inputs": None,
    "donated": [],
    "outputs": None,
    "reasons": [],
    "error": None,
    "seconds": 0.0,
}
"""Fields of a line, in order, with the values of a call about which nothing is known."""
LONGEST_MESSAGE = 20_000
"""Characters that are kept of a message: XLA may print the whole module."""


def find_jaxlib() -> Any:
    """Return the extension module of jaxlib: `_jax` from 0.6.1 on, `xla_extension` before."""
    # `xla_client` had an alias of the extension, which later releases lack.
    found = getattr(xla_client, "_xla", None)
    return importlib.import_module("jaxlib._jax") if found is None else found


def parse_version(text: str) -> tuple[int, ...]:
    """Return a version of StableHLO as numbers that can be compared."""
    return tuple(map(int, text.split(".")))


def get_current_version() -> str:
    """Return the version of StableHLO that this release reads, e.g. `1.9.3`."""
    return str(stablehlo.get_current_version())


def get_minimum_version() -> str:
    """Return the oldest version of StableHLO that this release reads and writes."""
    return str(stablehlo.get_minimum_version())


def find_written_version(requested: str) -> str:
    """Return the version in which a module is written for a reader.

    Args:
        requested: Version of StableHLO of the reader.

    Returns:
        The older of that version and the version of this release.
    """
    return min(requested, get_current_version(), key=parse_version)


def explain_missing_writer() -> str:
    """Return why this jaxlib cannot write portable artifacts, empty if it can."""
    if hasattr(getattr(find_jaxlib(), "mlir", None), "serialize_portable_artifact"):
        return ""
    return "this jaxlib has no serialize_portable_artifact"


def write_portable(module: ir.Module, version: str) -> bytes:
    """Return a module as a portable artifact, written as `jax.export` does.

    Args:
        module: Module that jax hands to the compiler; it is not changed.
        version: Version of StableHLO to write, at most that of this release.

    Returns:
        The artifact. Shardings of Shardy are in frontend attributes, as in exported functions.

    Raises:
        Exception: If the version lacks an operation of the module, or jaxlib refuses the module.
    """
    jaxlib = find_jaxlib()
    code = mlir.module_to_bytecode(module)
    sdy = getattr(jaxlib, "sdy", None)
    # A separate step up to 0.6.1; later the writer exports shardings itself, and the step on
    # shardings that are exported already changes nothing.
    if sdy is not None and b"sdy" in code:
        code = sdy.sdy_round_trip_export_pipeline(code)
    write = jaxlib.mlir.serialize_portable_artifact
    try:
        return bytes(write(code, version))
    except TypeError:
        # Bytecode up to 0.10.0, then a module. It is a copy, because the writer changes it.
        with module.context:
            return bytes(write(ir.Module.parse(code), version))


def read_portable(artifact: bytes) -> ir.Module:
    """Return a portable module as the compiler takes it, in the current context.

    Args:
        artifact: The module, as `write_portable` returns it.

    Raises:
        Exception: If this release cannot read it.
    """
    # Shardings of Shardy stay in frontend attributes. `jax.export` turns them back before it calls
    # an exported function; compiled after that pass, a shard_map ends the process of 0.12.0.
    read = find_jaxlib().mlir.deserialize_portable_artifact(artifact)
    # Bytecode up to 0.9.2.
    return read if isinstance(read, ir.Module) else ir.Module.parse(read)


@cache
def find_shardy_format() -> str:
    """Return how this release spells shardings of Shardy in artifacts.

    XLA ends the process when it meets the other spelling.

    Returns:
        `custom_call` if the shardings of a shard_map are on the custom calls around its body, from
        0.6.1 on; `call` if they are on the call of the body; empty if there is no Shardy.
    """
    try:
        with mlir.make_ir_context():
            written = write_portable(ir.Module.parse(_MANUAL_PROGRAM), get_current_version())
            text = str(read_portable(written))
    except Exception:  # the dialect or the writer for it is missing
        return ""
    return "custom_call" if _ON_CUSTOM_CALL.search(text) else "call"


def write_versions(
    module: ir.Module, versions: Sequence[str]
) -> tuple[dict[str, bytes], dict[str, str]]:
    """Write a module for several readers.

    Args:
        module: Module that jax hands to the compiler.
        versions: Versions of StableHLO of the readers.

    Returns:
        The artifact by version, and for the other versions why they have none.
    """
    written: dict[str, bytes] = {}
    artifacts: dict[str, bytes] = {}
    unwritten: dict[str, str] = {}
    for version in versions:
        target = find_written_version(version)
        try:
            if target not in written:
                written[target] = write_portable(module, target)
            artifacts[version] = written[target]
        except Exception as error:
            unwritten[version] = explain_missing_writer() or str(error)[:LONGEST_MESSAGE]
    return artifacts, unwritten


def hash_content(content: bytes) -> str:
    """Return the name of a blob: the SHA-256 of its content."""
    return hashlib.sha256(content).hexdigest()


def store_blob(folder: Path, content: bytes) -> str:
    """Store content by its hash.

    Args:
        folder: Folder of a recording or of results.
        content: The content.

    Returns:
        The name of the file in `blobs`.
    """
    digest = hash_content(content)
    path = folder / BLOBS / digest
    if not path.exists():
        # Renamed when complete: a process that crashes leaves no part of a blob.
        part = path.with_name(f"{digest}.{os.getpid()}.{threading.get_ident()}")
        part.write_bytes(content)
        part.replace(path)
    return digest


def append_line(file: Path, line: dict[str, Any]) -> None:
    """Append a line of JSON with one write, so that lines of several processes do not mix."""
    out = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(out, json.dumps(line).encode() + b"\n")
    finally:
        os.close(out)


def describe_error(error: BaseException, stage: str) -> dict[str, str]:
    """Return an exception as plain data.

    Args:
        error: The exception.
        stage: `compile` or `execute`.
    """
    message = str(error)[:LONGEST_MESSAGE]
    return {"type": type(error).__name__, "message": message, "stage": stage}


def describe_shards(shards: Sequence[np.ndarray], shape: Sequence[int]) -> dict[str, Any]:
    """Return an array of the format without its data.

    Args:
        shards: Data of each shard, in the order of the device assignment.
        shape: Global shape.
    """
    return {
        "shape": list(shape),
        "dtype": shards[0].dtype.name,
        "shard_shape": list(shards[0].shape),
    }


def describe_options(options: Any, devices: np.ndarray) -> dict[str, Any]:
    """Return the options of a compilation that belong to the program.

    Flags of XLA are left out: they belong to the process that compiles.

    Args:
        options: Options that jax hands to the compiler.
        devices: Devices of the computation.

    Returns:
        `replicas`, `partitions`; `devices`, ids in the order of the device assignment; `platform`;
        `spmd`, `shardy` and `tupled`: whether XLA partitions, with Shardy, and takes all parameters
        as one tuple; `to_parameters` and `to_outputs`: whether XLA may choose their shardings;
        `overrides`: pairs of a compiler option and its value.
    """
    build = options.executable_build_options
    flat = devices.flatten().tolist()
    return {
        "replicas": options.num_replicas,
        "partitions": options.num_partitions,
        "devices": [device.id for device in flat],
        "platform": flat[0].platform,
        "spmd": bool(build.use_spmd_partitioning),
        # The option came with 0.4.34.
        "shardy": bool(getattr(build, "use_shardy_partitioner", False)),
        "tupled": bool(options.parameter_is_tupled_arguments),
        "to_parameters": [bool(flag) for flag in getattr(build, f"{PROPAGATION}parameters")],
        "to_outputs": [bool(flag) for flag in getattr(build, f"{PROPAGATION}output")],
        "overrides": [[name, value] for name, value in options.env_option_overrides],
    }


def find_obstacle(array: Any, ids: Sequence[int]) -> str:
    """Return why an array cannot be recorded, empty if it can.

    Args:
        array: Array that an executable takes or returns.
        ids: Ids of the devices of the executable.
    """
    sharding = array.sharding
    if not array.is_fully_addressable or {d.id for d in sharding.device_set} != set(ids):
        return "devices of other processes"
    kind = getattr(sharding, "memory_kind", None)
    if kind is not None and kind != next(iter(sharding.device_set)).default_memory().kind:
        return f"memory of kind {kind}"
    return ""


def find_reasons(executable: Any) -> list[str]:
    """Return why a call cannot be repeated elsewhere, apart from its arrays.

    Args:
        executable: Instance of `ExecuteReplicated`.
    """
    found = {
        "host callbacks": executable.has_host_callbacks,
        "ordered effects": executable.ordered_effects,
        "unordered effects": executable.has_unordered_effects,
        "mutable references": executable.mut,
    }
    return [reason for reason, applies in found.items() if applies]


def find_shardy(artifacts: Iterable[bytes]) -> str:
    """Return the format of the shardings of Shardy in artifacts, empty if they have none."""
    return find_shardy_format() if any(MARK in artifact for artifact in artifacts) else ""


def get_symbol(operation: Any) -> str:
    """Return the name of a module or a function, empty if it has none."""
    attributes = operation.attributes
    return str(ir.StringAttr(attributes["sym_name"]).value) if "sym_name" in attributes else ""


def find_donated(module: ir.Module) -> list[int]:
    """Return the numbers of the inputs that a module may overwrite."""
    main = next(op for op in module.body.operations if get_symbol(op) == "main")
    if "arg_attrs" not in main.attributes:
        return []
    each = map(ir.DictAttr, ir.ArrayAttr(main.attributes["arg_attrs"]))
    marks = ("tf.aliasing_output", "jax.buffer_donor")
    return [number for number, found in enumerate(each) if any(mark in found for mark in marks)]


def is_compile_only(executable: Any) -> bool:
    """Say whether an executable is for devices of a topology, which execute nothing."""
    client = getattr(find_jaxlib(), "CompileOnlyPyClient", None)
    known = client is not None and isinstance(getattr(executable, "client", None), client)
    return known or not hasattr(executable, "execute_sharded")
