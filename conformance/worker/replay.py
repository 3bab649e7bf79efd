"""Repeats recorded computations: compiles their modules with this release's XLA, and runs them."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax._src import compiler, xla_bridge
from jax._src.interpreters import mlir

from conformance.kit.case import Observed
from conformance.worker.computations import (
    BLOBS,
    COMPUTATIONS,
    TEXT,
    ComputationRecorder,
    describe_error,
    find_portable_writer,
    get_stablehlo_version,
)
from conformance.worker.job import load_case
from conformance.worker.passes import patch_pass_option
from conformance.worker.stages import build, describe_arguments, describe_shape, jit_program

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.kit.env import Env

RESULTS = "results.jsonl"
NO_SHARDY = "the XLA of this release has no Shardy"


def record(env: Env, *, folder: str, versions: Sequence[str], case: Mapping[str, Any]) -> Observed:
    """Run a case, and record its computations.

    Args:
        env: Environment of the cell.
        folder: Folder of the recording.
        versions: Versions of StableHLO in which modules are written.
        case: The case: `file`, `family`, `name`, `kind` and `params`.

    Returns:
        Nothing of interest; the recording is in the folder.
    """
    recorder = ComputationRecorder(Path(folder), versions, compile_only=env.compile_only)
    # How a case ends is known from its regular job.
    with contextlib.suppress(BaseException):
        fn = load_case(case["file"], case["family"], case["name"])
        recorder.install()
        if case["kind"] == "program":
            _run_program(env, build(fn, env, case["params"]))
        else:
            fn(env, **case["params"])
    return Observed({"recorded": np.int64(1)})


def _run_program(env: Env, built: Any) -> None:
    jitted = jit_program(built)
    if env.compile_only:
        args, kwargs = describe_arguments(built, describe_shape)
        env.compile(env.lower(jitted.trace(*args, **kwargs)))
        return
    args, kwargs = env.values((built.args, built.kwargs))
    jax.block_until_ready(jitted(*args, **kwargs))


def describe_compiler(env: Env) -> Observed:
    """Return the version of StableHLO that this release reads, empty if it reads none.

    Args:
        env: Environment of the cell.
    """
    del env
    version = get_stablehlo_version() if find_portable_writer() is not None else ""
    return Observed({"found": np.int64(1)}, artifacts={"stablehlo": version})


def replay(
    env: Env,
    *,
    source: str,
    target: str,
    version: str,
    numbers: Sequence[int],
    options: Mapping[str, Any],
) -> Observed:
    """Repeat recorded calls, and write each result before the next call.

    Args:
        env: Environment of the cell.
        source: Folder of the recording.
        target: Folder of the results.
        version: Version of StableHLO in which the modules were written.
        numbers: Numbers of the calls.
        options: Options of the compiler, beside those of the recorded compilation.

    Returns:
        The number of results.
    """
    load_kernels()
    if options:
        patch_pass_option()
    wanted = set(numbers)
    replayer = _Replayer(env, Path(source), Path(target), version)
    lines = Path(source, COMPUTATIONS).read_text().splitlines()
    count = 0
    for line in map(json.loads, lines):
        if line["number"] in wanted:
            line["options"]["overrides"] |= options
            replayer.repeat(line)
            count += 1
    return Observed({"results": np.int64(count)})


def load_kernels() -> None:
    """Load the kernels that compiled modules call by name.

    jax loads the functions of LAPACK while it lowers a program, without which XLA calls address 0.
    """
    with contextlib.suppress(ImportError):
        from jaxlib.cpu import _lapack

        _lapack.initialize()


class _Replayer:
    """Repeats calls with this release's XLA."""

    def __init__(self, env: Env, source: Path, target: Path, version: str) -> None:
        self._env = env
        self._source = source
        self._target = target
        self._version = version
        # The compiler of a topology has a client of its own.
        self._backend = env.devices[0].client if env.compile_only else xla_bridge.get_backend()
        self._compiled: dict[str, Any] = {}
        (target / BLOBS).mkdir(parents=True, exist_ok=True)

    def repeat(self, line: dict[str, Any]) -> None:
        """Compile and run one call, and write its result."""
        start = time.perf_counter()
        result: dict[str, Any] = {"number": line["number"], "outputs": [], "error": None}
        stage = "compile"
        # The line of a crash is missing; the caller goes on after it.
        try:
            executable = self._compile(line)
            result["hlo"] = self._store(_render_hlo(executable).encode())
            # A call that failed where it was recorded is repeated as well; one that failed to
            # compile has no inputs.
            if "inputs" in line and not self._env.compile_only:
                stage = "execute"
                result["outputs"] = self._execute(executable, line)
        except Exception as error:
            result["error"] = describe_error(error, stage)
        result["seconds"] = round(time.perf_counter() - start, 6)
        with (self._target / RESULTS).open("a") as file:
            file.write(json.dumps(result) + "\n")

    def _compile(self, line: dict[str, Any]) -> Any:
        text, artifact = line["modules"][TEXT], line["modules"].get(self._version)
        key = json.dumps([text, line["options"]], sort_keys=True)
        if key not in self._compiled:
            with mlir.make_ir_context():
                try:
                    module = parse_module(self._read(text))
                except ValueError:
                    if artifact is None:
                        raise
                    module = read_portable(self._read(artifact))
                self._compiled[key] = compile_module(self._backend, module, line["options"])
        return self._compiled[key]

    def _read(self, digest: str) -> bytes:
        return (self._source / BLOBS / digest).read_bytes()

    def _execute(self, executable: Any, line: dict[str, Any]) -> list[dict[str, Any]]:
        devices = find_devices(self._backend, line["options"]["devices"])
        inputs = [self._load_array(array, devices) for array in line["inputs"]]
        results = executable.execute_sharded(inputs)
        outputs = results.disassemble_into_single_device_arrays()
        return [self._describe_output(shards) for shards in outputs]

    def _load_array(self, described: dict[str, Any], devices: Sequence[Any]) -> Any:
        dtype, shape = jax.numpy.dtype(described["dtype"]), tuple(described["shape"])
        contents = map(self._read, described["shards"])
        shards = [
            jax.device_put(np.frombuffer(data, dtype).reshape(shape), device)
            for data, device in zip(contents, devices, strict=True)
        ]
        return join_shards(shards, devices)

    def _describe_output(self, shards: Sequence[Any]) -> dict[str, Any]:
        arrays = [np.asarray(shard) for shard in shards]
        return {
            "shape": list(arrays[0].shape),
            "dtype": str(arrays[0].dtype),
            "shards": [self._store(array.tobytes()) for array in arrays],
        }

    def _store(self, content: bytes) -> str:
        digest = hashlib.sha256(content).hexdigest()
        path = self._target / BLOBS / digest
        if not path.exists():
            path.write_bytes(content)
        return digest


def find_devices(backend: Any, ids: Sequence[int]) -> list[Any]:
    """Return devices by their ids.

    Args:
        backend: The client of the devices.
        ids: The ids.
    """
    by_id = {device.id: device for device in backend.devices()}
    return [by_id[number] for number in ids]


def join_shards(shards: Sequence[Any], devices: Sequence[Any]) -> Any:
    """Return one array of equal shards, for an executable that takes a shard on each device.

    Args:
        shards: An array on each device, in the order of the devices.
        devices: The devices.
    """
    if len(devices) == 1:
        return shards[0]
    mesh = jax.sharding.Mesh(np.asarray(devices, dtype=object), "shards")
    shape = shards[0].shape
    # The executable reads the shards; the shape of the whole and its sharding only have to fit
    # them. An array of rank 0 can only be replicated.
    spec = jax.sharding.PartitionSpec("shards") if shape else jax.sharding.PartitionSpec()
    whole = (len(devices) * shape[0], *shape[1:]) if shape else ()
    sharding = jax.sharding.NamedSharding(mesh, spec)
    return jax.make_array_from_single_device_arrays(whole, sharding, list(shards))


def read_portable(artifact: bytes) -> Any:
    """Return the module of a portable artifact, as the compiler takes it.

    Args:
        artifact: The artifact.

    Raises:
        Exception: If this release cannot read it.
    """
    return find_portable_writer().deserialize_portable_artifact(artifact)


def parse_module(text: bytes) -> Any:
    """Return the module of a text, as the compiler takes it.

    Args:
        text: The text in generic form.

    Raises:
        ValueError: If this release cannot read it.
    """
    try:
        module = mlir.ir.Module.parse(text.decode())
    except Exception as error:
        raise ValueError(f"cannot read portable text: {error}") from error
    # The compiler takes bytecode up to 0.10.1, as the writer of artifacts does.
    takes_bytes = "mlir_module: bytes" in str(
        find_portable_writer().serialize_portable_artifact.__doc__
    )
    return mlir.module_to_bytecode(module) if takes_bytes else module


def compile_module(backend: Any, module: Any, options: Mapping[str, Any]) -> Any:
    """Compile a module with this release's XLA.

    Args:
        backend: The client that compiles.
        module: The module, in the current context of MLIR, or its bytecode.
        options: Options of the recorded compilation.

    Returns:
        The executable.

    Raises:
        Exception: If XLA refuses it.
    """
    count = options["replicas"] * options["partitions"]
    ids = np.asarray(options["devices"]).reshape(options["replicas"], options["partitions"])
    wanted = {
        "num_replicas": options["replicas"],
        "num_partitions": options["partitions"],
        "device_assignment": ids,
        "use_spmd_partitioning": options["spmd"],
        "use_auto_spmd_partitioning": options["auto_spmd"],
        "env_options_overrides": dict(options["overrides"]),
        "backend": backend,
    }
    # Releases from 0.12.0 partition always, and have no option for it.
    known = inspect.signature(compiler.get_compile_options).parameters
    made = compiler.get_compile_options(**{k: v for k, v in wanted.items() if k in known})
    build_options = made.executable_build_options
    if options["shardy"] and count > 1 and not hasattr(build_options, "use_shardy_partitioner"):
        raise NotImplementedError(NO_SHARDY)
    with contextlib.suppress(AttributeError):  # up to 0.4.34 XLA has no Shardy
        build_options.use_shardy_partitioner = options["shardy"]
    build_options.allow_spmd_sharding_propagation_to_parameters = options["to_parameters"]
    build_options.allow_spmd_sharding_propagation_to_output = options["to_outputs"]
    return _compile(backend, module, find_devices(backend, options["devices"]), made)


def _compile(backend: Any, module: Any, devices: Sequence[Any], options: Any) -> Any:
    from jax._src.lib import xla_client

    # `compile` became `compile_and_load` with 0.6.1; the list of devices came with 0.5.1.
    compile_ = getattr(backend, "compile_and_load", backend.compile)
    if hasattr(xla_client, "DeviceList"):
        with contextlib.suppress(TypeError):
            listed = xla_client.DeviceList(tuple(devices))
            return compile_(module, executable_devices=listed, compile_options=options)
    return compile_(module, compile_options=options)


def _render_hlo(executable: Any) -> str:
    modules = executable.hlo_modules()
    return str(modules[0].to_string()) if modules else ""
