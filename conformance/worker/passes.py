"""One program, compiled again and again: with HLO passes disabled, with other XLA flags.

Run as a probe of its own within a cell. The program is built, traced and lowered once; what is
asked then comes as frames over a socket, one answer after the other. An answer that XLA crashes
on, or that takes too long, ends the process: whoever asks begins another.
"""

from __future__ import annotations

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
"""The compiler option that names the passes that are not run, with commas."""


def serve(env: Env, channel: str, case: Mapping[str, Any]) -> Observed:
    """Answer until nobody asks any more.

    Args:
        env: Of the cell.
        channel: Path of the socket on which somebody listens.
        case: The case, a program: `file`, `family`, `name` and `params`; `timeout`, in seconds,
            of each answer; `artifacts`, the IRs besides HLO that are told.

    Returns:
        How many answers were given.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
        link.connect(channel)
        return Observed({"answers": np.int64(_Session(env, case, link).serve())})


class _Asked(Env):
    """The cell, with compiler options of the moment."""

    def __init__(self, env: Env) -> None:
        super().__init__(env.cell)
        self.options: dict[str, Any] = {}

    def compile(self, lowered: Any, options: Mapping[str, Any] | None = None) -> Any:
        """Return a lowered program compiled, with the options asked for too."""
        return super().compile(lowered, {**self.options, **(options or {})})


class _Session(Observer):
    """One program, and who asks about it.

    What is emitted is as of a job, see `Observer`; `{"ready": ...}` follows the first stages and
    `{"end": True}` each answer.
    """

    def __init__(self, env: Env, case: Mapping[str, Any], link: socket.socket) -> None:
        self._link = link
        super().__init__(lambda header, body: frames.write(link.fileno(), header, body))
        self._env = _Asked(env)
        self._case = case
        self._fn: Callable[..., Any] | None = None
        self._told = {"hlo", "cost", "memory", *case["artifacts"]}

    def serve(self) -> int:
        """Answer every question; return how many there were."""
        patch_pass_option()
        lowered = self._lowered()
        self._emit({"ready": {"config": collect_config()}}, b"")
        answers = 0
        for request in self._questions():
            self._env.options = {DISABLED: "", **request["options"]}
            if lowered is not None:
                self._answer(lowered, run=request["run"] and not self._env.compile_only)
            self._emit({"end": True}, b"")
            answers += 1
        return answers

    def _questions(self) -> Iterator[dict[str, Any]]:
        decoder = frames.Decoder()
        while data := self._link.recv(1 << 16):
            for frame in decoder.feed(data):
                # The alarm ends the process also where it is deep within XLA.
                signal.setitimer(signal.ITIMER_REAL, self._case["timeout"])
                yield frame.header
                signal.setitimer(signal.ITIMER_REAL, 0)

    def _lowered(self) -> Any:
        """Return the program lowered, None if it does not get so far."""
        case = self._case
        try:
            with self._stage("build"):
                self._fn = load_case(case["file"], case["family"], case["name"])
                built = self._build()
            values = self._env.values((built.args, built.kwargs))
            reference = bind_reference(built.reference, *values)
            self._reference(reference, self._fn)
            return self._stage_out(built, self._env)
        except BaseException as error:  # any exception of a case is its observation
            self._failed(error)
            return None

    def _build(self) -> Program:
        assert self._fn is not None  # noqa: S101 - it is loaded first
        return build(self._fn, self._env, self._case["params"])

    def _answer(self, lowered: Any, *, run: bool) -> None:
        try:
            compiled = self._compile(lowered, self._env)
            if run:
                # Built anew: a program may donate its arguments.
                self._execute(compiled, self._build())
        except BaseException as error:  # any exception of XLA is the answer
            self._failed(error)

    def _failed(self, error: BaseException) -> None:
        if isinstance(error, Unsupported):
            self._emit({"unsupported": str(error)}, b"")
        else:
            self._emit({"error": describe_error(error, self._fn)}, b"")

    def _cross_lower(self, lowering: Any) -> None:
        """Lower for no other platform: no pass of them is asked about."""

    def _text(self, name: str, text: str) -> None:
        if name in self._told or name.startswith("no_"):
            super()._text(name, text)


def patch_pass_option() -> None:
    """Make the compiler option that disables passes mean so on every release.

    Up to 0.5.3 an option that is a list is refused, or ends the process; but in a compilation's
    own settings it can be set.
    """
    make = compiler.get_compile_options

    def made(*args: Any, **more: Any) -> Any:
        given = dict(more.get("env_options_overrides") or {})
        names = given.pop(DISABLED, "")
        options = make(*args, **{**more, "env_options_overrides": given})
        if names:
            options.executable_build_options.debug_options.xla_disable_hlo_passes = names
        return options

    compiler.get_compile_options = made


def collect_config() -> dict[str, bool | int | float | str | None]:
    """Return every option of `jax.config` whose value is plain, with its value."""
    values = dict(jax.config.values)
    plain = (bool, int, float, str, type(None))
    return {name: value for name, value in sorted(values.items()) if isinstance(value, plain)}
