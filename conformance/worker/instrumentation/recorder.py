"""Records the computations that jax compiles and executes, so that another release can repeat them.

The folder of a recording has a file `computations.jsonl` with a line for each executed call,
written when the call has ended, and a folder `blobs` with modules, jaxprs and array data by their
SHA-256.

    {"number": 0, 1, ...,                 the last line of a cut recording is {"truncated": WHY}
     "name": "jit_f",                     name of the module
     "stage": "compile" | "execute",      the stage that ended the call
     "modules": {VERSION: HASH, ...},     portable artifact for a reader of StableHLO VERSION
     "unwritten": {VERSION: WHY, ...},    versions in which the module cannot be written
     "shardy": FORMAT,                    `recording_format.find_shardy_format` of this release if
                                          the artifacts have shardings of Shardy, else empty
     "jaxpr": HASH | null,
     "options": OPTIONS | null,           see `recording_format.describe_options`
     "inputs": [ARRAY, ...] | null,       kept inputs, in the order of the parameters
     "donated": [number of an input, ...],
     "outputs": [ARRAY, ...] | null,
     "reasons": [WHY, ...],               why the call cannot be repeated elsewhere; empty if it can
     "error": null | {"type", "message", "stage"},
     "seconds": SECONDS}                  of the compilation in a line of the stage compile

    ARRAY {"shape": global shape, "dtype": name, "shard_shape": shape of each shard,
           "shards": [HASH, ...]}         C-order bytes, in the order of the device assignment

`inputs` and `outputs` are null for a call that was not executed or has reasons. A topology without
hardware executes nothing, so each of its compilations has a line.

This module runs in user scripts, where the rest of the package may be another version: it imports
its neighbour `recording_format` only.
"""

from __future__ import annotations

import re
import threading
import time
import weakref
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax._src import compilation_cache, compiler
from jax._src.interpreters import mlir, pxla

if __package__:
    from conformance.worker.instrumentation import recording_format as form
else:  # in a script, with the folder of this file on the path
    import recording_format as form  # type: ignore[import-not-found,no-redef]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

LARGEST = 256 * 2**20
"""Default limit of the bytes of array data in a recording."""
MOST_CALLS = 2000
"""Default limit of the calls of a recording."""
_ADDRESS = re.compile(r"0x[0-9a-f]{4,}")


def encode_text(closed: Any) -> str:
    """Return a closed jaxpr as jax prints it, without addresses."""
    return _ADDRESS.sub("0x...", str(closed))


class CallRecorder:
    """Writes the computations of this process to a folder.

    None of its methods raises for a computation that cannot be recorded: its line has a reason.

    Args:
        folder: Folder of the recording; created if missing.
        versions: Versions of StableHLO in which modules are written.
        encode_jaxpr: Returns a closed jaxpr as text.
        largest: Limit of the bytes of array data; a call beyond it is recorded without data.
        most_calls: Limit of the calls.
    """

    def __init__(
        self,
        folder: Path,
        versions: Iterable[str],
        encode_jaxpr: Callable[[Any], str] = encode_text,
        largest: int = LARGEST,
        most_calls: int = MOST_CALLS,
    ) -> None:
        self._folder = folder
        self._versions = tuple(versions)
        self._encode_jaxpr = encode_jaxpr
        self._largest = largest
        self._most_calls = most_calls
        self._stored: set[str] = set()
        self._used = 0
        self._jaxprs: dict[int, tuple[Any, str]] = {}
        # With each executable, which has no weak references: its id must not be used again.
        self._compiled: dict[int, tuple[Any, dict[str, Any]]] = {}
        self._count = 0
        self._lock = threading.Lock()
        self._own = threading.local()
        (folder / form.BLOBS).mkdir(parents=True, exist_ok=True)

    @contextmanager
    def _work(self) -> Iterator[None]:
        """Do the recorder's own work: its computations are not recorded, transfers are allowed."""
        # No lock meanwhile: reading an array waits for its computation, which may call Python in
        # another thread, and that call may be recorded.
        self._own.busy = True
        try:
            with jax.transfer_guard("allow"):
                yield
        finally:
            self._own.busy = False

    @property
    def is_idle(self) -> bool:
        """Whether this thread is not recorded now: own work, or too many calls."""
        return getattr(self._own, "busy", False) or self._count > self._most_calls

    def keep_jaxpr(self, module: Any, closed: Any) -> None:
        """Keep the text of a jaxpr until its module is gone.

        Args:
            module: Module that the jaxpr was lowered to.
            closed: The closed jaxpr.
        """
        with self._work():
            try:
                digest = form.store_blob(self._folder, self._encode_jaxpr(closed).encode())
            except Exception:  # a replay does not need the jaxpr
                return
            key = id(module)
            alive = weakref.ref(module, lambda _: self._jaxprs.pop(key, None))
            self._jaxprs[key] = alive, digest

    def describe_module(self, module: Any, devices: Any, options: Any) -> dict[str, Any]:
        """Write a module in each version.

        Args:
            module: Module that jax hands to the compiler.
            devices: NumPy array of devices.
            options: Options that jax hands to the compiler.

        Returns:
            The fields that all calls of the module share.
        """
        with self._work():
            try:
                artifacts, unwritten = form.write_versions(module, self._versions)
                _, jaxpr = self._jaxprs.get(id(module), (None, None))
                return {
                    "name": form.get_symbol(module.operation),
                    "modules": {v: form.store_blob(self._folder, c) for v, c in artifacts.items()},
                    "unwritten": unwritten,
                    "shardy": form.find_shardy(artifacts.values()),
                    "jaxpr": jaxpr,
                    "options": form.describe_options(options, np.asarray(devices, dtype=object)),
                    "donated": form.find_donated(module),
                }
            except Exception as error:
                return {"reasons": [_describe_failure(error)]}

    def keep_compiled(self, executable: Any, shared: dict[str, Any], seconds: float) -> None:
        """Link an executable to its module; on a topology, write the line of the compilation.

        Args:
            executable: Executable, as the compiler returned it.
            shared: Fields of its module.
            seconds: Seconds of the compilation.
        """
        if form.is_compile_only(executable):
            self.write({**shared, "stage": "compile", "seconds": seconds})
        else:
            self._compiled[id(executable)] = executable, shared

    def begin(self, executable: Any, args: Sequence[Any]) -> dict[str, Any]:
        """Return the line of a call before it is executed, with its inputs.

        Args:
            executable: Instance of `ExecuteReplicated`.
            args: Its arguments.
        """
        with self._work():
            _, shared = self._compiled.get(id(executable.xla_executable), (None, None))
            reasons = form.find_reasons(executable)
            if shared is None:
                return {
                    "name": str(executable.name),
                    "reasons": ["compiled before the recording", *reasons],
                }
            line = {**shared, "reasons": [*shared.get("reasons", ()), *reasons]}
            if line["reasons"]:
                return line
            try:
                kept = [arg for n, arg in enumerate(args) if n in executable.kept_var_idx]
                return self._add_arrays(line, "inputs", executable.in_handler(kept))
            except Exception as error:  # usually the call itself raises it, too
                return {**line, "reasons": [_describe_failure(error)]}

    def end(self, line: dict[str, Any], outputs: Any, seconds: float) -> None:
        """Write the line of a call that returned.

        Args:
            line: The line, from `begin`.
            outputs: Results of the call.
            seconds: Seconds from the call until it returned.
        """
        with self._work():
            if not line["reasons"]:
                line = self._add_outputs(line, outputs)
            self.write({**line, "stage": "execute", "seconds": seconds})

    def _add_outputs(self, line: dict[str, Any], outputs: Any) -> dict[str, Any]:
        try:
            # An error of an asynchronous execution is raised here first, and again by the program
            # when it uses the result.
            jax.block_until_ready(outputs)
        except Exception as error:
            return {**line, "error": form.describe_error(error, "execute")}
        try:
            return self._add_arrays(line, "outputs", outputs)
        except Exception as error:
            return {**line, "reasons": [_describe_failure(error)]}

    def _add_arrays(self, line: dict[str, Any], field: str, arrays: Any) -> dict[str, Any]:
        """Return a line with the data of arrays, or with the reason why it has none."""
        ids = line["options"]["devices"]
        # The physical array of typed keys.
        physical = [getattr(array, "_base_array", array) for array in arrays]
        reasons = sorted(
            {reason for array in physical if (reason := form.find_obstacle(array, ids))}
        )
        described = [] if reasons else [self._describe(array, ids) for array in physical]
        if None in described:
            reasons = [f"more than {self._largest / 2**20:g} MiB of arrays in the recording"]
        if reasons:
            return {**line, "inputs": None, "outputs": None, "reasons": reasons}
        return {**line, field: described}

    def _describe(self, array: Any, ids: Sequence[int]) -> dict[str, Any] | None:
        """Return an array of the format, None if the recording has no space for it."""
        by_device = {shard.device.id: shard.data for shard in array.addressable_shards}
        shards = [np.asarray(by_device[number]) for number in ids]
        digests = [form.hash_content(shard.tobytes()) for shard in shards]
        unique = dict(zip(digests, shards, strict=True))
        with self._lock:
            new = unique.keys() - self._stored
            size = sum(unique[digest].nbytes for digest in new)
            if self._used + size > self._largest:
                return None
            self._used += size
            self._stored |= new
        for digest in new:
            form.store_blob(self._folder, unique[digest].tobytes())
        return {**form.describe_shards(shards, array.shape), "shards": digests}

    def write(self, line: dict[str, Any]) -> None:
        """Append a line, or the last line if there are too many.

        Args:
            line: Fields that differ from those of a call about which nothing is known.
        """
        with self._lock:
            number = self._count
            self._count += 1
            if number < self._most_calls:
                whole = {**form.EMPTY_LINE, **line, "number": number}
                form.append_line(self._folder / form.COMPUTATIONS, whole)
            elif number == self._most_calls:
                last = {"truncated": f"more than {self._most_calls} calls"}
                form.append_line(self._folder / form.COMPUTATIONS, last)
                self._compiled.clear()


def _describe_failure(error: Exception) -> str:
    return f"cannot be recorded: {type(error).__name__}: {error}"[: form.LONGEST_MESSAGE]


class _CallFactory:
    """Makes recorded calls, and hides from jax's fast paths that they are calls.

    From the second call on, `jit`, ahead-of-time executables and `pmap` skip Python if
    `isinstance(call, pxla.ExecuteReplicated)`; no release has another use of that test. A class
    could not hide its own instances: Python does not ask it about an exact match.
    """

    def __init__(self, call_type: type) -> None:
        self._call_type = call_type

    def __call__(self, *args: Any, **more: Any) -> Any:
        return self._call_type(*args, **more)

    def __instancecheck__(self, instance: object) -> bool:
        return False


def install(folder: Path | str, versions: Iterable[str], **more: Any) -> Callable[[], None]:
    """Record each computation that jax compiles and executes from now on.

    Caches of jax are cleared: a computation that is compiled already is compiled again.

    Args:
        folder: Folder of the recording; created if missing.
        versions: Versions of StableHLO in which modules are written, e.g. `("1.9.3",)`.
        **more: Further arguments of `CallRecorder`.

    Returns:
        A function that ends the recording.
    """
    recorder = CallRecorder(Path(folder), versions, **more)
    lower, compile_ = mlir.lower_jaxpr_to_module, compiler.compile_or_get_cached
    call, cached = pxla.ExecuteReplicated, jax.config.jax_enable_compilation_cache
    mlir.lower_jaxpr_to_module = _wrap_lower(recorder, lower)
    compiler.compile_or_get_cached = _wrap_compile(recorder, compile_)
    pxla.ExecuteReplicated = _CallFactory(_make_call_type(recorder, call))
    _use_persistent_cache(False)

    def uninstall() -> None:
        mlir.lower_jaxpr_to_module, compiler.compile_or_get_cached = lower, compile_
        pxla.ExecuteReplicated = call
        _use_persistent_cache(cached)

    return uninstall


def _use_persistent_cache(use: bool) -> None:
    jax.config.update("jax_enable_compilation_cache", use)
    # It remembers whether it is used.
    compilation_cache.reset_cache()
    jax.clear_caches()


@contextmanager
def record(folder: Path | str, versions: Iterable[str], **more: Any) -> Iterator[None]:
    """Record the computations of a context; arguments are those of `install`."""
    uninstall = install(folder, versions, **more)
    try:
        yield
    finally:
        uninstall()


def _wrap_lower(recorder: CallRecorder, lower: Callable[..., Any]) -> Callable[..., Any]:
    def lower_jaxpr_to_module(name: Any, closed: Any, *args: Any, **more: Any) -> Any:
        result = lower(name, closed, *args, **more)
        if not recorder.is_idle:
            recorder.keep_jaxpr(result.module, closed)
        return result

    return lower_jaxpr_to_module


def _wrap_compile(recorder: CallRecorder, compile_: Callable[..., Any]) -> Callable[..., Any]:
    # The first four arguments are the same on all releases.
    def compile_or_get_cached(
        backend: Any, module: Any, devices: Any, options: Any, *args: Any, **more: Any
    ) -> Any:
        if recorder.is_idle:
            return compile_(backend, module, devices, options, *args, **more)
        # Before the compiler gets it, which may change it.
        shared = recorder.describe_module(module, devices, options)
        start = time.perf_counter()
        try:
            executable = compile_(backend, module, devices, options, *args, **more)
        except Exception as error:
            seconds = time.perf_counter() - start
            described = form.describe_error(error, "compile")
            recorder.write({**shared, "stage": "compile", "error": described, "seconds": seconds})
            raise
        recorder.keep_compiled(executable, shared, time.perf_counter() - start)
        return executable

    return compile_or_get_cached


def _make_call_type(recorder: CallRecorder, call_type: Any) -> type:
    def call(executable: Any, *args: Any) -> Any:
        if recorder.is_idle:
            return call_type.__call__(executable, *args)
        # Before the call, which may delete its inputs.
        line = recorder.begin(executable, args)
        start = time.perf_counter()
        try:
            outputs = call_type.__call__(executable, *args)
        except Exception as error:
            seconds = time.perf_counter() - start
            described = form.describe_error(error, "execute")
            recorder.write({**line, "stage": "execute", "error": described, "seconds": seconds})
            raise
        recorder.end(line, outputs, time.perf_counter() - start)
        return outputs

    return type("ExecuteReplicated", (call_type,), {"__slots__": (), "__call__": call})
