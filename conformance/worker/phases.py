"""The phases of a case in one process: what each takes, and the memory that it needs.

Phases are measured in several passes, of which the fastest counts: other load of the host can only
add to the time. Two jobs that are compared take turns, see `conformance.worker.turns`.
"""

from __future__ import annotations

import contextlib
import gc
import json
import re
import time
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import jax
import numpy as np

from conformance.kit.case import Observed, Program
from conformance.worker import capture
from conformance.worker.counters import Counters, Reading, read_memory, reset_peak
from conformance.worker.stages import (
    copy_arrays,
    describe_arguments,
    describe_shape,
    jit_program,
    select_dynamic,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.kit.env import Env
    from conformance.worker.turns import Turns

T = TypeVar("T")

BATCH = 0.001
"""Seconds of one batch of calls at least: the turns of two jobs must be short."""
BATCHES = 15
"""Batches of calls in a pass: on a busy host one more pass tells more than many more batches."""
CALLS_ONE_BY_ONE = 20
"""Calls of a program over several devices, each of which ends before the next one."""
SECONDS_OF_BATCHES = 0.1
"""Seconds of all batches of a call that is slow."""
SECONDS_OF_LEAK = 1.0
"""Seconds that calls which look for a leak may take; a slower case is not searched for leaks."""
DONATED = ("donate_argnums", "donate_argnames")
"""Options of `jax.jit` that name donated arguments."""
SLOWEST_CALL = 1.0
"""Seconds of a first call from which on there is no later one: it takes about as long."""
SLOW_CALL = 0.01
"""Seconds of a call from which on its dispatch is not measured: it would be lost in the call."""
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?[\w.-]+ = ", re.MULTILINE)
_FUSION = re.compile(r" fusion\(")


class CasePhases:
    """Passes over the phases of a case, of which the fastest counts.

    Attributes:
        serial: Phases that start no threads, which would stay on the processor of this one.
        passes: Passes so far.
        calls: Calls that look for a leak in the first pass.
        seconds: Seconds of the last pass.
    """

    serial: frozenset[str] = frozenset()

    def __init__(self, counters: Counters, turns: Turns) -> None:
        self.passes = 0
        self.calls = 0
        self.seconds = 0.0
        self._counters = counters
        self._turns = turns
        self._best: dict[str, Reading] = {}
        self._by_turn: dict[str, list[Reading]] = {}
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
            "phases": {
                name: {
                    **reading._asdict(),
                    "turns": [one._asdict() for one in self._by_turn.get(name, ())],
                }
                for name, reading in self._best.items()
            },
            "memory": self._memory,
            "compiled": self._compiled,
        }

    def time(
        self,
        phase: str,
        run: Callable[[], T],
        calls: int = 1,
        *,
        prepare: Callable[[], None] | None = None,
    ) -> T:
        """Run a phase, and keep what it takes if it is the fastest so far; that was a turn.

        Args:
            phase: The phase.
            run: The work to measure.
            calls: Equal calls in it.
            prepare: Called first, and not measured: others have left their data in the caches.
        """
        with self._turns.on_shared_processor() if phase in self.serial else nullcontext():
            if prepare is not None:
                prepare()
            start = self._counters.read()
            result = run()
            taken = self._counters.since(start).per(calls)
        if self._turns.together:
            self._by_turn.setdefault(phase, []).append(taken)
        best = self._best.get(phase)
        if best is not None:
            counted = [r.instructions for r in (best, taken) if r.instructions is not None]
            taken = Reading(
                min(best.wall, taken.wall), min(best.cpu, taken.cpu), min(counted, default=None)
            )
        self._best[phase] = taken
        self._turns.hand_over()
        return result

    def agree_on_wall(self, phase: str) -> float:
        """Return the seconds of wall-clock time of the slower job's fastest pass."""
        return self._turns.agree(self._best[phase].wall)

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
        first = self.agree_on_wall("first")
        if first > SLOWEST_CALL:
            return first
        seconds = self.repeat("run", run)
        if not self.passes and self.calls and seconds * self.calls < SECONDS_OF_LEAK:
            self._memory["leak"] = find_leak(run, self.calls)
        return seconds

    def repeat(self, phase: str, run: Callable[[], object]) -> float:
        """Measure a call in batches of many; return the seconds of one."""

        def run_once() -> None:
            jax.block_until_ready(run())

        self.time(phase, run_once)
        once = self.agree_on_wall(phase)
        if once > SECONDS_OF_BATCHES:
            self.time(phase, run_once)  # a busy host may have stopped the first one
            once = self.agree_on_wall(phase)
        if once > SECONDS_OF_BATCHES:
            return once
        # Each job's own speed decides: batches of both take as long.
        calls = max(1, int(BATCH / max(self._best[phase].wall, 1e-7)))

        def run_batch() -> None:
            for _ in range(calls - 1):
                run()
            jax.block_until_ready(run())

        for _ in range(min(BATCHES, int(SECONDS_OF_BATCHES / max(once, 1e-7)))):
            self.time(phase, run_batch, calls, prepare=run_once if calls > 1 else None)
        return self.agree_on_wall(phase)


class ProgramPhases(CasePhases):
    """Passes over a program: trace, lower, compile, first call, later calls, dispatch."""

    serial = frozenset({"trace", "lower", "run", "dispatch"})

    def __init__(
        self, counters: Counters, turns: Turns, env: Env, build_program: Callable[[], Program]
    ) -> None:
        super().__init__(counters, turns)
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
            if not self._turns.agree(not _is_on_one_device(result)):
                self.repeat("dispatch", dispatch)
                return
            for _ in range(CALLS_ONE_BY_ONE):
                # Collectives of calls in flight wait for threads that the other calls hold.
                jax.block_until_ready(self.time("dispatch", dispatch))


class ProbePhases(CasePhases):
    """Passes over a probe: the first call, which compiles, and later ones."""

    def __init__(self, counters: Counters, turns: Turns, call: Callable[[], Any]) -> None:
        super().__init__(counters, turns)
        self._call = call

    def _run(self) -> None:
        def run() -> Any:
            seen = self._call()
            return jax.block_until_ready(seen.value if isinstance(seen, Observed) else seen)

        self.measure_calls(run)


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


def _is_on_one_device(result: Any) -> bool:
    return all(len(array.sharding.device_set) == 1 for array in jax.tree_util.tree_leaves(result))


def _count_live() -> int:
    gc.collect()
    return sum(array.nbytes for array in jax.live_arrays())
