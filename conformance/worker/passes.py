"""Repeated compilation of one program: with HLO passes disabled, with other XLA flags.

Runs as a separate probe in a cell. The program is built, traced and lowered once; then requests
with compiler options arrive as frames over a socket, and each is answered before the next one is
read. A crash of XLA or a timeout ends the process, and the client starts another one.
"""

from __future__ import annotations

import functools
import signal
import socket
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax._src import compiler

from conformance.kit.case import Observed, Program, Unsupported
from conformance.kit.env import Env
from conformance.worker import frames
from conformance.worker.job import load_case
from conformance.worker.stages import Observer, bind_reference, build, describe_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

DISABLED = "xla_disable_hlo_passes"
"""Compiler option with the names of disabled passes, separated by commas."""


def serve(env: Env, channel: str, case: Mapping[str, Any]) -> Observed:
    """Answer requests until the client closes the connection.

    Args:
        env: Environment of the cell.
        channel: Path of the socket on which the client listens.
        case: The case, a program: `file`, `family`, `name` and `params`; `timeout`, in seconds,
            of each answer; `artifacts`, the IRs to emit in addition to the HLO.

    Returns:
        The number of answers.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
        link.connect(channel)
        return Observed({"answers": np.int64(_CompileServer(env, case, link).serve())})


class _OptionsEnv(Env):
    """The environment of a cell, with the compiler options of the current request."""

    def __init__(self, env: Env) -> None:
        super().__init__(env.cell)
        self.options: dict[str, Any] = {}

    def compile(self, lowered: Any, options: Mapping[str, Any] | None = None) -> Any:
        """Compile a lowered program, with the options of the request added."""
        return super().compile(lowered, {**self.options, **(options or {})})


class _CompileServer(Observer):
    """Compiles one program for each request of a client.

    The events are those of a job, see `Observer`; `{"ready": ...}` follows the first stages and
    `{"end": True}` each answer.
    """

    def __init__(self, env: Env, case: Mapping[str, Any], link: socket.socket) -> None:
        self._link = link
        super().__init__(lambda header, body: frames.write(link.fileno(), header, body))
        self._env = _OptionsEnv(env)
        self._case = case
        self._fn: Callable[..., Any] | None = None
        self._emitted = {"hlo", "cost", "memory", *case["artifacts"]}

    def serve(self) -> int:
        """Answer every request; return their number."""
        patch_pass_option()
        lowered = self._lower_program()
        self._emit({"ready": {"config": collect_config()}}, b"")
        answers = 0
        for request in self._receive_requests():
            # An option is always set: without options, `compile` returns its cached executable.
            self._env.options = {DISABLED: "", **request["options"]}
            if lowered is not None:
                self._answer(lowered, run=request["run"] and not self._env.compile_only)
            self._emit({"end": True}, b"")
            answers += 1
        return answers

    def _receive_requests(self) -> Iterator[dict[str, Any]]:
        decoder = frames.Decoder()
        while data := self._link.recv(1 << 16):
            for frame in decoder.feed(data):
                # The alarm ends the process also where it is deep within XLA.
                signal.setitimer(signal.ITIMER_REAL, self._case["timeout"])
                yield frame.header
                signal.setitimer(signal.ITIMER_REAL, 0)

    def _lower_program(self) -> Any:
        """Return the lowered program, None if an earlier stage fails."""
        case = self._case
        try:
            with self._run_stage("build"):
                self._fn = load_case(case["file"], case["family"], case["name"])
                built = self._build()
            values = self._env.values((built.args, built.kwargs))
            reference = bind_reference(built.reference, *values)
            self._emit_reference(reference, self._fn)
            return self._stage_out(built, self._env)
        except BaseException as error:  # any exception of a case is its observation
            self._emit_failure(error)
            return None

    def _build(self) -> Program:
        assert self._fn is not None  # noqa: S101 - it is loaded first
        return build(self._fn, self._env, self._case["params"])

    def _answer(self, lowered: Any, *, run: bool) -> None:
        try:
            compiled = self._compile(lowered, self._env)
            if run:
                # Built again, because a program may donate its arguments.
                self._execute(compiled, self._build())
        except BaseException as error:  # any exception of XLA is the answer
            self._emit_failure(error)

    def _emit_failure(self, error: BaseException) -> None:
        if isinstance(error, Unsupported):
            self._emit({"unsupported": str(error)}, b"")
        else:
            self._emit({"error": describe_error(error, self._fn)}, b"")

    def _cross_lower(self, lowering: Any) -> None:
        """Do nothing: only passes of the cell's own platform are disabled."""

    def _emit_text(self, name: str, text: str) -> None:
        if name in self._emitted or name.startswith("no_"):
            super()._emit_text(name, text)


def patch_pass_option() -> None:
    """Make the compiler option that disables passes work on every release.

    Up to 0.5.3 jax refuses a list as the value of an option, or ends the process. The field of the
    compilation's debug options can be set on all releases.
    """
    original = compiler.get_compile_options

    @functools.wraps(original)  # its signature tells what the release knows
    def get_compile_options(*args: Any, **more: Any) -> Any:
        overrides = dict(more.get("env_options_overrides") or {})
        names = overrides.pop(DISABLED, "")
        options = original(*args, **{**more, "env_options_overrides": overrides})
        if names:
            options.executable_build_options.debug_options.xla_disable_hlo_passes = names
        return options

    compiler.get_compile_options = get_compile_options


def collect_config() -> dict[str, bool | int | float | str | None]:
    """Return the options of `jax.config` whose values are plain data."""
    values = dict(jax.config.values)
    plain = (bool, int, float, str, type(None))
    return {name: value for name, value in sorted(values.items()) if isinstance(value, plain)}
