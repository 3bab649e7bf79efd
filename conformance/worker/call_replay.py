"""Repeats recorded computations: compiles their modules with this release's XLA and executes them.

`conformance.worker.instrumentation.recorder` documents the recording. The folder of the results has
a file `results.jsonl` with a line for each repeated call, and a folder `blobs`:

    {"number": number of the recorded call,
     "same_as": number of an equal call that was repeated already | null,
     "hlo": HASH | null,                   text of the optimised HLO
     "no_hlo": WHY,                        empty if there is a text
     "outputs": [ARRAY, ...] | null,       as in a recording; null if nothing was executed
     "reasons": [WHY, ...],                why this release cannot repeat the call; empty if it can
     "error": null | {"type", "message", "stage"},
     "seconds": {"compile": SECONDS, "execute": SECONDS}}

A line is written before the next call begins: a crash of XLA ends the process, and only the line of
that call is missing.
"""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import ml_dtypes
import numpy as np
from jax._src import dtypes

from conformance.kit.case import Observed
from conformance.kit.compat import enable_x64
from conformance.worker import capture, module_compiler
from conformance.worker.instrumentation import recording_format as form

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from conformance.kit.env import Env

RESULTS = "results.jsonl"


def describe_writer(env: Env) -> Observed:
    """Describe how a cell exchanges modules with other releases.

    Args:
        env: Environment of the cell.

    Returns:
        `version` and `minimum`, the newest and the oldest StableHLO that the release reads and
        writes; `missing`, why it cannot write, empty if it can. The artifact `writer` has the same
        as a JSON object.
    """
    del env
    answers = {
        "version": form.get_current_version(),
        "minimum": form.get_minimum_version(),
        "missing": form.explain_missing_writer(),
    }
    return Observed(answers, artifacts={"writer": json.dumps(answers)})


def replay(
    env: Env, *, source: str, target: str, version: str, numbers: Sequence[int] | None = None
) -> Observed:
    """Repeat recorded calls in this release.

    Args:
        env: Environment of the cell.
        source: Folder of the recording.
        target: Folder of the results; created if missing. Lines are appended.
        version: Version of StableHLO whose artifacts are read, a version of the recording.
        numbers: Numbers of the calls to repeat; None for all.

    Returns:
        The number of lines written.
    """
    lines = map(json.loads, Path(source, form.COMPUTATIONS).read_text().splitlines())
    wanted = [
        line
        for line in lines
        if "truncated" not in line and (numbers is None or line["number"] in numbers)
    ]
    replayer = _Replayer(env, Path(source), Path(target), version)
    # Otherwise 64-bit inputs would become 32-bit ones.
    with enable_x64(True), _disable_persistent_cache():
        for line in wanted:
            replayer.repeat(line)
    return Observed({"results": np.int64(len(wanted))})


@contextmanager
def _disable_persistent_cache() -> Iterator[None]:
    before = jax.config.jax_enable_compilation_cache
    jax.config.update("jax_enable_compilation_cache", False)
    try:
        yield
    finally:
        jax.config.update("jax_enable_compilation_cache", before)


class _Replayer:
    """Repeats calls one after another.

    Args:
        env: Environment of the cell.
        source: Folder of the recording.
        target: Folder of the results.
        version: Version of StableHLO whose artifacts are read.
    """

    def __init__(self, env: Env, source: Path, target: Path, version: str) -> None:
        self._env = env
        self._source = source
        self._target = target
        self._version = version
        # Not `env.devices`: on a compile-only platform, those of the topology.
        self._devices = {device.id: device for device in env.devices}
        self._compiled: dict[str, tuple[Any, str, str]] = {}
        self._results: dict[str, dict[str, Any]] = {}
        (target / form.BLOBS).mkdir(parents=True, exist_ok=True)
        if not env.compile_only:
            module_compiler.load_kernels()

    def repeat(self, line: Mapping[str, Any]) -> None:
        """Repeat a call, and write its result."""
        key = json.dumps([line["modules"].get(self._version), line["options"], line["inputs"]])
        known = self._results.get(key)
        if known is None or known["reasons"]:
            known = self._results[key] = {**self._make_result(line), "number": line["number"]}
            result = {**known, "same_as": None}
        else:
            result = {**known, "number": line["number"], "same_as": known["number"]}
        form.append_line(self._target / RESULTS, result)

    def _make_result(self, line: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result of a call, without its numbers."""
        result: dict[str, Any] = {
            "number": 0, "same_as": None, "hlo": None, "no_hlo": "", "outputs": None,
            "reasons": self._find_reasons(line), "error": None, "seconds": {},
        }  # fmt: skip
        if result["reasons"]:
            return result
        stage = "compile"
        try:
            with _measure(result["seconds"], stage):
                executable, text, missing = self._compile(line)
            result["hlo"] = form.store_blob(self._target, text.encode()) if text else None
            result["no_hlo"] = missing
            if line["inputs"] is not None and not self._env.compile_only:
                stage = "execute"
                with _measure(result["seconds"], stage):
                    outputs = self._execute(executable, line)
                result["outputs"] = outputs
        except Exception as error:
            # A call that did not compile where it was recorded needs nothing in particular.
            lack = "" if line["error"] else module_compiler.find_lack(error)
            if lack:
                result["reasons"] = [lack]
            else:
                result["error"] = form.describe_error(error, stage)
        return result

    def _find_reasons(self, line: Mapping[str, Any]) -> list[str]:
        """Return why this release cannot repeat a call."""
        if line["reasons"]:
            return list(line["reasons"])
        if self._version not in line["modules"]:
            why = line["unwritten"].get(self._version, "it was not requested")
            return [f"no artifact for StableHLO {self._version}: {why}"]
        options = line["options"]
        reasons = []
        if lacking := sorted(set(options["devices"]) - self._devices.keys()):
            reasons.append(f"the cell has no devices {lacking}")
        if self._misreads_shardings(line):
            reasons.append("the XLA of this release reads shardings of Shardy in another format")
        unknown = {array["dtype"] for array in line["inputs"] or ()} - _list_dtypes()
        reasons += [f"this release has no type {name}" for name in sorted(unknown)]
        return reasons

    def _misreads_shardings(self, line: Mapping[str, Any]) -> bool:
        if not line["shardy"] or line["shardy"] == form.find_shardy_format():
            return False
        # XLA ignores the shardings of a module for one device, except around a shard_map.
        artifact = (self._source / form.BLOBS / line["modules"][self._version]).read_bytes()
        return line["options"]["partitions"] > 1 or form.MANUAL in artifact

    def _compile(self, line: Mapping[str, Any]) -> tuple[Any, str, str]:
        """Return an executable, the text of its HLO, and why it has none."""
        digest = line["modules"][self._version]
        key = json.dumps([digest, line["options"]])
        if key not in self._compiled:
            artifact = (self._source / form.BLOBS / digest).read_bytes()
            devices = [self._devices[number] for number in line["options"]["devices"]]
            lowered = module_compiler.PortableModule(artifact, line["options"], devices)
            compiled, render = capture.compile_with_text(lowered, _compile_lowered)
            try:
                texts = render(), ""
            except Exception as error:  # the program itself is unaffected
                texts = "", f"{type(error).__name__}: {error}"
            self._compiled[key] = compiled.runtime_executable(), *texts
        return self._compiled[key]

    def _execute(self, executable: Any, line: Mapping[str, Any]) -> list[dict[str, Any]]:
        devices = [self._devices[number] for number in line["options"]["devices"]]
        inputs = [self._load_array(array, devices) for array in line["inputs"]]
        outputs = executable.execute_sharded(inputs).disassemble_into_single_device_arrays()
        return [
            self._store_output([np.asarray(shard) for shard in shards], recorded)
            for shards, recorded in zip(
                outputs, line["outputs"] or [None] * len(outputs), strict=True
            )
        ]

    def _load_array(self, described: Mapping[str, Any], devices: Sequence[Any]) -> Any:
        """Return an input: an array with a shard on each device."""
        dtype, shape = _get_dtype(described["dtype"]), tuple(described["shard_shape"])
        shards = [
            np.frombuffer((self._source / form.BLOBS / name).read_bytes(), dtype).reshape(shape)
            for name in described["shards"]
        ]
        return put_shards(shards, devices)

    def _store_output(
        self, shards: Sequence[np.ndarray], recorded: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        # XLA knows the shapes of shards only. The global shape is that of the recording, if its
        # shards have the same shape.
        shape = list(shards[0].shape)
        if recorded is not None and recorded["shard_shape"] == shape:
            shape = recorded["shape"]
        digests = [form.store_blob(self._target, shard.tobytes()) for shard in shards]
        return {**form.describe_shards(shards, shape), "shards": digests}


def _compile_lowered(lowered: Any, options: Mapping[str, Any] | None = None) -> Any:
    return lowered.compile(compiler_options=options)


@contextmanager
def _measure(seconds: dict[str, float], name: str) -> Iterator[None]:
    start = time.perf_counter()
    try:
        yield
    finally:
        seconds[name] = round(time.perf_counter() - start, 6)


def _get_dtype(name: str) -> Any:
    # NumPy knows the types of ml_dtypes by object, not by name.
    return np.dtype(getattr(ml_dtypes, name, name))


def _list_dtypes() -> set[str]:
    """Return the names of the array types of this release."""
    return {np.dtype(dtype).name for dtype in dtypes._jax_types}


def put_shards(shards: Sequence[np.ndarray], devices: Sequence[Any]) -> Any:
    """Return one array of equally shaped shards.

    Args:
        shards: Data of each shard.
        devices: The device of each shard.

    Returns:
        An array that an executable accepts for a parameter of the shape of a shard.
    """
    placed = list(map(jax.device_put, shards, devices))
    if len(placed) == 1:
        return placed[0]
    # The executable reads the shards only; sharding and global shape must merely fit them.
    mesh = jax.sharding.Mesh(np.asarray(devices, dtype=object), "shards")
    shape = shards[0].shape
    spec = jax.sharding.PartitionSpec("shards") if shape else jax.sharding.PartitionSpec()
    whole = (len(devices) * shape[0], *shape[1:]) if shape else ()
    sharding = jax.sharding.NamedSharding(mesh, spec)
    return jax.make_array_from_single_device_arrays(whole, sharding, placed)
