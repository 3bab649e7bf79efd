"""Measures one case: time of each phase, memory, growth of memory, and the plan of the compiler.

Everything is measured in the process of the job, after a small program that starts the backend. The
orchestrator compares jobs, see `conformance.bench`.
"""

from __future__ import annotations

import json
import time
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from conformance.kit.case import Program, Unsupported
from conformance.worker.counters import Counters
from conformance.worker.phases import ProbePhases, ProgramPhases
from conformance.worker.stages import build, describe_arguments, describe_error
from conformance.worker.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from conformance.kit.env import Env
    from conformance.worker.stages import Emit

MEASUREMENTS = "measurements"
"""Artifact with what was measured, as a JSON object; see `Measured` in `conformance.bench`."""
PASSES = 20
"""Passes over the phases at most."""
SIZE = "size"
"""Parameter of the function of a case with sizes."""


class Measurer:
    """Measures one case in this process, at each of its sizes.

    Args:
        fn: Function of the case.
        env: Its first argument.
        params: Keyword arguments of the parametrisation.
        wanted: `sizes`, values of the parameter `size` in ascending order, `[None]` for a case
            without; `scaled`, whether they multiply the leading axes of the arguments instead;
            `seconds` within which another pass over the largest size is to end; `calls` to look for
            a leak; `turns` with another job, see `Turns`.

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
        with closing(Turns(self._wanted.get("turns"))) as turns:
            return self._measure(kind, counters, turns)

    def _measure(self, kind: str, counters: Counters, turns: Turns) -> list[dict[str, Any]]:
        start = time.perf_counter()
        found = []
        for size in self._wanted["sizes"]:
            scaled = self._wanted["scaled"]
            params = self._params if size is None or scaled else {**self._params, SIZE: size}
            build_program = partial(self._build, params, size if scaled else 1)
            call = partial(self.fn, self._env, **params)
            measurer = (
                ProgramPhases(counters, turns, self._env, build_program)
                if kind == "program"
                else ProbePhases(counters, turns, call)
            )
            largest = size == self._wanted["sizes"][-1]
            measurer.calls = self._wanted["calls"] if largest else 0
            measurer.run()
            # Smaller sizes serve the growth alone, and have one pass.
            while largest and measurer.passes < PASSES:
                end = time.perf_counter() - start + measurer.seconds
                if turns.agree(end) > self._wanted["seconds"]:
                    break
                measurer.run()
            found.append({"size": size, **measurer.to_json()})
        return found

    def _build(self, params: dict[str, Any], scale: int) -> Program:
        return scale_arguments(build(self.fn, self._env, params), scale)


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


def _start_backend() -> None:
    """Compile and run a small program, so that the start of the backend is not the case's."""
    jax.block_until_ready(jax.jit(lambda a: a + 1)(np.zeros(2, np.float32)))
