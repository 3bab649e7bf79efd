"""Measures one case: time of each phase, memory, growth of memory, and the plan of the compiler.

Everything is measured in the process of the job, after a small program that starts the backend.
Phases are measured in several passes, of which the fastest counts: other load of the host can only
add to the time. The orchestrator compares jobs, see `conformance.bench`.
"""

from __future__ import annotations

import contextlib
import gc
import json
import re
import time
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import jax
import numpy as np

from conformance.kit.case import Observed, Program, Unsupported
from conformance.worker import capture
from conformance.worker.counters import Counters, Reading, read_memory, reset_peak
from conformance.worker.stages import (
    build,
    copy_arrays,
    describe_arguments,
    describe_error,
    describe_shape,
    jit_program,
    select_dynamic,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from conformance.kit.env import Env
    from conformance.worker.stages import Emit

T = TypeVar("T")

MEASUREMENTS = "measurements"
"""Artifact with what was measured, as a JSON object; see `Measured` in `conformance.bench`."""
PASSES = 5
"""Passes over the phases at most."""
BATCH = 0.004
"""Seconds of one batch of calls at least."""
BATCHES = 5
"""Batches of calls, of which the fastest counts."""
CALLS_ONE_BY_ONE = 20
"""Calls of a program over several devices, each of which ends before the next one."""
SECONDS_OF_BATCHES = 0.1
"""Seconds of all batches of a call that is slow."""
SECONDS_OF_LEAK = 1.0
"""Seconds that calls which look for a leak may take; a slower case is not searched for leaks."""
DONATED = ("donate_argnums", "donate_argnames")
"""Options of `jax.jit` that name donated arguments."""
SIZE = "size"
"""Parameter of the function of a case with sizes."""
SLOWEST_CALL = 1.0
"""Seconds of a first call from which on there is no later one: it takes about as long."""
SLOW_CALL = 0.01
"""Seconds of a call from which on its dispatch is not measured: it would be lost in the call."""
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?[\w.-]+ = ", re.MULTILINE)
_FUSION = re.compile(r" fusion\(")


class Measurer:
    """Measures one case in this process, at each of its sizes.

    Args:
        fn: Function of the case.
        env: Its first argument.
        params: Keyword arguments of the parametrisation.
        wanted: `sizes`, values of the parameter `size` in ascending order, `[None]` for a case
            without; `scaled`, whether they multiply the leading axes of the arguments instead;
            `seconds` within which another pass over the largest size is to end; `calls` to look for
            a leak.

    Attributes:
        fn: Function of the case.
    """

    def __init__(
        self, fn: Callable[..., Any], env: Env, params: dict[str, Any], wanted: Mapping[str, Any]
    ) -> None:
        self.fn = fn
        self._env = env
        self._params = params
        self._wanted = wanted

    def measure(self, kind: str) -> list[dict[str, Any]]:
        """Return what was measured at each size, as JSON data.

        Args:
            kind: `program` or `probe`.
        """
        counters = Counters()
        _start_backend()
        start = time.perf_counter()
        found = []
        for size in self._wanted["sizes"]:
            scaled = self._wanted["scaled"]
            params = self._params if size is None or scaled else {**self._params, SIZE: size}
            build_program = partial(self._build, params, size if scaled else 1)
            call = partial(self.fn, self._env, **params)
            measurer = (
                _ProgramPasses(counters, self._env, build_program)
                if kind == "program"
                else _ProbePasses(counters, call)
            )
            largest = size == self._wanted["sizes"][-1]
            measurer.calls = self._wanted["calls"] if largest else 0
            measurer.run()
            # Smaller sizes serve the growth alone, and have one pass.
            while largest and measurer.passes < PASSES:
                spent = time.perf_counter() - start
                if spent + measurer.seconds > self._wanted["seconds"]:
                    break
                measurer.run()
            found.append({"size": size, **measurer.to_json()})
        return found

    def _build(self, params: dict[str, Any], scale: int) -> Program:
        return scale_arguments(build(self.fn, self._env, params), scale)


class _Passes:
    """Passes over the phases of a case, of which the fastest counts.

    Attributes:
        passes: Passes so far.
        calls: Calls that look for a leak in the first pass.
        seconds: Seconds of the last pass.
    """

    def __init__(self, counters: Counters) -> None:
        self.passes = 0
        self.calls = 0
        self.seconds = 0.0
        self._counters = counters
        self._best: dict[str, Reading] = {}
        self._memory = {"baseline": read_memory().now}
        self._compiled: dict[str, Any] = {}

    def run(self) -> None:
        """Make one pass."""
        jax.clear_caches()
        gc.collect()
        start = time.perf_counter()
        self._run()
        self.passes += 1
        self.seconds = time.perf_counter() - start

    def _run(self) -> None:
        raise NotImplementedError

    def to_json(self) -> dict[str, Any]:
        """Return what was measured, see `conformance.bench.measured.Measured`."""
        return {
            "passes": self.passes,
            "phases": {name: reading._asdict() for name, reading in self._best.items()},
            "memory": self._memory,
            "compiled": self._compiled,
        }

    def time(self, phase: str, run: Callable[[], T], calls: int = 1) -> T:
        """Run a phase, and keep what it takes if it is the fastest so far."""
        start = self._counters.read()
        result = run()
        taken = self._counters.since(start).per(calls)
        best = self._best.get(phase)
        if best is not None:
            counted = [r.instructions for r in (best, taken) if r.instructions is not None]
            taken = Reading(
                min(best.wall, taken.wall), min(best.cpu, taken.cpu), min(counted, default=None)
            )
        self._best[phase] = taken
        return result

    def measure_growth(self, name: str, run: Callable[[], T]) -> T:
        """Run a piece of the first pass, and keep by how much the memory rises meanwhile."""
        if self.passes:  # later passes use memory that the first one left
            return run()
        reset_peak()
        before = read_memory().now
        result = run()
        self._memory[name] = max(0, read_memory().peak - before)
        return result

    def measure_calls(self, run: Callable[[], object]) -> float:
        """Measure the first call, later ones and what they leave; return the seconds of one."""
        before = _count_live()
        self.measure_growth("run", lambda: self.time("first", run))
        if not self.passes:
            self._memory["live"] = max(0, _count_live() - before)
        if self._best["first"].wall > SLOWEST_CALL:
            return self._best["first"].wall
        seconds = self.repeat("run", run)
        if not self.passes and self.calls and seconds * self.calls < SECONDS_OF_LEAK:
            self._memory["leak"] = find_leak(run, self.calls)
        return seconds

    def repeat(self, phase: str, run: Callable[[], object]) -> float:
        """Measure a call in batches of many; return the seconds of one."""

        def run_once() -> None:
            jax.block_until_ready(run())

        self.time(phase, run_once)
        if self._best[phase].wall > SECONDS_OF_BATCHES:
            self.time(phase, run_once)  # a busy host may have stopped the first one
        once = self._best[phase].wall
        if once > SECONDS_OF_BATCHES:
            return once
        calls = max(1, int(BATCH / max(once, 1e-7)))

        def run_batch() -> None:
            for _ in range(calls - 1):
                run()
            jax.block_until_ready(run())

        for _ in range(min(BATCHES, int(SECONDS_OF_BATCHES / max(once, 1e-7)))):
            self.time(phase, run_batch, calls)
        return self._best[phase].wall


class _ProgramPasses(_Passes):
    """Passes over a program: trace, lower, compile, first call, later calls, dispatch."""

    def __init__(self, counters: Counters, env: Env, build_program: Callable[[], Program]) -> None:
        super().__init__(counters)
        self._env = env
        self._build = build_program

    def _run(self) -> None:
        built = self._build()
        fn, args, kwargs = jit_program(built), built.args, built.kwargs
        if self._env.compile_only:
            args, kwargs = describe_arguments(built, describe_shape)
        traced = self.time("trace", lambda: fn.trace(*args, **kwargs))
        lowered = self.time("lower", lambda: self._env.lower(traced))
        compiled = self.measure_growth(
            "compile", lambda: self.time("compile", lambda: self._env.compile(lowered))
        )
        if not self._compiled:
            self._compiled = describe_compiled(compiled)
        if not self._env.compile_only:
            self._call(built, fn, compiled)

    def _call(self, built: Program, fn: Any, compiled: Any) -> None:
        # The number of the argument may be 0.
        donates = any(built.jit.get(name) not in (None, (), []) for name in DONATED)

        def run() -> Any:
            args, kwargs = select_dynamic(built)
            if donates:
                args, kwargs = copy_arrays((args, kwargs))
            return jax.block_until_ready(compiled(*args, **kwargs))

        if self.measure_calls(run) < SLOW_CALL and not donates:
            dispatch = partial(fn, *built.args, **built.kwargs)
            # Some releases compile again for the first call: 0.4.36 to 0.5.0 do.
            result = jax.block_until_ready(dispatch())
            if _is_on_one_device(result):
                self.repeat("dispatch", dispatch)
                return
            for _ in range(CALLS_ONE_BY_ONE):
                # Collectives of calls in flight wait for threads that the other calls hold.
                jax.block_until_ready(self.time("dispatch", dispatch))


class _ProbePasses(_Passes):
    """Passes over a probe: the first call, which compiles, and later ones."""

    def __init__(self, counters: Counters, call: Callable[[], Any]) -> None:
        super().__init__(counters)
        self._call = call

    def _run(self) -> None:
        def run() -> Any:
            seen = self._call()
            return jax.block_until_ready(seen.value if isinstance(seen, Observed) else seen)

        self.measure_calls(run)


def emit_measurements(measurer: Measurer, kind: str, emit: Emit) -> None:
    """Measure a case, and emit `MEASUREMENTS`; its exceptions are emitted, not raised.

    Args:
        measurer: Measures the case.
        kind: `program` or `probe`.
        emit: Receives an event and its bytes.
    """
    emit({"stage": "execute"}, b"")
    try:
        measured = measurer.measure(kind)
    except Unsupported as reason:
        emit({"unsupported": str(reason)}, b"")
    except BaseException as error:  # any exception of a case is its observation
        emit({"error": describe_error(error, measurer.fn)}, b"")
    else:
        emit({"artifact": MEASUREMENTS}, json.dumps(measured).encode())


def scale_arguments(built: Program, factor: int) -> Program:
    """Return a program whose array arguments have a longer leading axis.

    Args:
        built: The program.
        factor: Number of copies of each argument with an axis, one after another; 1 changes
            nothing.
    """
    if factor == 1:
        return built

    def lengthen(leaf: Any) -> Any:
        if isinstance(leaf, (jax.Array, np.ndarray)) and leaf.ndim:
            return np.concatenate([np.asarray(leaf)] * factor)
        return leaf

    args, kwargs = describe_arguments(built, lengthen)
    return Program(built.fn, args, kwargs, built.reference, built.jit)


def describe_compiled(compiled: Any) -> dict[str, Any]:
    """Return the size of an executable, and what the compiler estimates.

    Args:
        compiled: The executable.

    Returns:
        `hlo_bytes`, `hlo_instructions` and `fusions` of the optimised HLO; `cost` with flops and
        bytes accessed; `plan` with the bytes of arguments, outputs, temporaries and others. What
        the backend does not give is left out.
    """
    found: dict[str, Any] = {}
    # A backend may give none of them, and its errors move from release to release.
    for name, render in (("cost", capture.render_cost), ("plan", capture.render_memory)):
        with contextlib.suppress(Exception):
            found[name] = json.loads(render(compiled))
    text = ""
    with contextlib.suppress(Exception):
        text = compiled.as_text()
    if text:
        found |= {
            "hlo_bytes": len(text),
            "hlo_instructions": len(_INSTRUCTION.findall(text)),
            "fusions": len(_FUSION.findall(text)),
        }
    return found


def find_leak(run: Callable[[], object], calls: int) -> int:
    """Return the bytes that a call leaves behind: the median slope of the resident memory.

    Args:
        run: The call.
        calls: Number of calls, of which the first fifth warms up.
    """
    sizes = []
    for _ in range(calls):
        run()
        sizes.append(read_memory().now)
    gc.collect()
    kept = np.array(sizes[calls // 5 :], np.float64)
    step = len(kept) // 2
    # Pairs half the range apart: a step of the allocator in a few calls is no slope.
    return int(np.median(kept[step:] - kept[: len(kept) - step]) / step) if step else 0


def _start_backend() -> None:
    """Compile and run a small program, so that the start of the backend is not the case's."""
    jax.block_until_ready(jax.jit(lambda a: a + 1)(np.zeros(2, np.float32)))


def _is_on_one_device(result: Any) -> bool:
    return all(len(array.sharding.device_set) == 1 for array in jax.tree_util.tree_leaves(result))


def _count_live() -> int:
    gc.collect()
    return sum(array.nbytes for array in jax.live_arrays())
