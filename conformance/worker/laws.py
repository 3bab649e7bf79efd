"""Laws inside a job: each example that the example server draws is checked, and answered.

A case with `given` is a function of its examples. A probe checks the law itself. A program is
observed with the first example, the simplest; then its reference and its variants are checked with
every example.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import subprocess
import time
from typing import TYPE_CHECKING, Any

import jax

from conformance.kit import distributed
from conformance.kit.case import GIVEN, CaseError, Observed, Program, Raises, Unsupported
from conformance.kit.laws import LawError, RejectedExample, check_same
from conformance.worker.example_codec import decode, encode
from conformance.worker.stages import (
    FALSIFYING,
    bind_reference,
    build,
    describe_error,
    jit_program,
)
from conformance.worker.variants import VARIANTS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Self

    from conformance.kit.env import Env
    from conformance.worker.stages import Emit, Observer

    Check = Callable[[dict[str, Any]], None]

HOLDS, REJECTED = "holds", "rejected"
LONGEST_OUTPUT = 2000
"""Characters that are shown of the output of a server that failed."""


class ExampleClient:
    """Draws the examples of one law from an example server.

    Args:
        law: Settings of the law, with the `command` of the server.
        given: Strategies by parameter.

    Attributes:
        text: An example as Python code: the first one, or the shrunk one for which the law does
            not hold.
        artifact: Name of the artifact with that text: `example` or `falsifying`.

    Raises:
        CaseError: If an argument of a strategy cannot be sent.
    """

    def __init__(self, law: Mapping[str, Any], given: Mapping[str, Any]) -> None:
        strategies = {name: _encode_strategy(name, one) for name, one in given.items()}
        # Variables of a development build in the cell are not for the Python of the harness.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        self._process = subprocess.Popen(
            law["command"], env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self._send({"given": strategies, "seed": law["seed"], "examples": law["examples"]})
        self._last: dict[str, Any] | None = None
        self.text = ""
        self.artifact = "example"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # The server ends when its input does.
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()
        self._process.wait()

    @functools.cached_property
    def first(self) -> Any:
        """The first example as JSON data, which is the simplest one; it stays to be checked.

        Raises:
            CaseError: If there is none.
        """
        self._last = self._receive()
        if "example" not in self._last:
            raise CaseError(str(self._last.get("wrong", "given draws no example")))
        self.text = str(self._last["text"])
        return self._last["example"]

    def check(self, check: Check) -> int:
        """Check a law on all examples.

        Args:
            check: Raises if the law does not hold for an example, `RejectedExample` if it says
                nothing about it.

        Returns:
            The number of examples for which the law holds.

        Raises:
            BaseException: The error of the law for the shrunk example, which it has as an
                attribute `FALSIFYING`.
            CaseError: If the strategies are wrong.
            Unsupported: If the cell cannot express the law.
        """
        failure: BaseException | None = None
        while True:
            message = self._last or self._receive()
            self._last = None
            if "example" not in message:
                break
            self.text = self.text or message["text"]
            reply, raised = _reply(check, decode(message["example"]))
            failure = raised or failure
            self._send({"reply": reply})
        if "falsified" in message and failure is not None:
            self.text, self.artifact = message["falsified"], "falsifying"
            with contextlib.suppress(AttributeError, TypeError):  # an exception with slots
                setattr(failure, FALSIFYING, message["falsified"])
            raise failure
        if not message.get(HOLDS):
            raise CaseError(str(message.get("wrong", "no example of given was accepted")))
        return int(message[HOLDS])

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None  # noqa: S101 - a pipe
        with contextlib.suppress(BrokenPipeError):  # the end of the answers is reported
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        assert self._process.stdout is not None  # noqa: S101 - a pipe
        line = self._process.stdout.readline()
        if not line:
            assert self._process.stderr is not None  # noqa: S101 - a pipe
            output = self._process.stderr.read()[-LONGEST_OUTPUT:]
            raise CaseError(f"the example server ended with {output or 'no output'}")
        return dict(json.loads(line))


def _encode_strategy(name: str, strategy: Any) -> Any:
    try:
        return encode(strategy)
    except TypeError as error:
        raise CaseError(
            f"given, {name}: {error}; Hypothesis draws outside of the cell, where functions of the "
            "case are unknown"
        ) from None


def _reply(check: Check, example: dict[str, Any]) -> tuple[str, BaseException | None]:
    try:
        check(example)
    except RejectedExample:
        return REJECTED, None
    except (CaseError, Unsupported):
        raise
    except BaseException as error:  # any exception of a case is its observation
        return type(error).__name__, error
    return HOLDS, None


def check_program(
    make: Callable[[Env], Program], env: Env, names: list[str], law: Mapping[str, Any]
) -> None:
    """Check the reference and the variants of a program for one example.

    Args:
        make: Builds the program, from which each variant needs fresh arguments.
        env: Environment of the case.
        names: Variants that the case claims.
        law: Settings of the law, with the tolerance of the case.

    Raises:
        LawError: If the value differs from the reference, or from a variant.
        CaseError: If there is neither a reference nor a variant.
    """
    built = make(env)
    if built.reference is None and not names:
        raise CaseError("a program with given has no reference and no same_as: it claims nothing")
    expected = bind_reference(built.reference, *env.values((built.args, built.kwargs)))
    value = jax.block_until_ready(jit_program(built)(*built.args, **built.kwargs))
    if expected is not None:
        _check_reference(value, expected, law)
    for name in names:
        other = VARIANTS[name](make, env)
        if name == "vmap_of_one":
            other = jax.tree_util.tree_map(lambda leaf: leaf[0], other)
        try:
            check_same(value, other, rtol=law["rtol"], atol=law["atol"])
        except LawError as error:
            raise LawError(f"same_as {name}: {error}") from None


def make_check(
    fn: Callable[..., Any], kind: str, env: Env, params: dict[str, Any], request: Mapping[str, Any]
) -> Check:
    """Return the function that checks the law of a case for an example.

    Args:
        fn: Function of the case.
        kind: `program` or `probe`.
        env: First argument of the function.
        params: Keyword arguments of the parametrisation.
        request: The request of the job, with `law` and `same_as`.
    """
    law, names = request["law"], list(request["same_as"])
    if kind == "probe":
        return lambda example: _check_nothing(fn(env, **params, **example))
    return lambda example: check_program(
        lambda place: build(fn, place, {**params, **example}), env, names, law
    )


def _check_nothing(seen: Any) -> None:
    if seen is not None:
        raise CaseError(
            f"a probe with given returned a {type(seen).__name__}, expected nothing: check the law "
            "in the function, e.g. by check_same of conformance.kit.laws"
        )


def _check_reference(
    value: Any, reference: Callable[[], Any] | None, law: Mapping[str, Any]
) -> None:
    expected = None if reference is None else reference()
    if isinstance(expected, Raises):
        raise CaseError("raises(...) is no reference of a case with given")
    check_same(value, expected, rtol=law["rtol"], atol=law["atol"])


def observe_law(
    observer: Observer,
    fn: Callable[..., Any],
    env: Env,
    request: Mapping[str, Any],
    emit: Emit,
) -> tuple[Callable[..., Any], bool]:
    """Observe a case with `given`.

    A probe has the value `{"examples": COUNT}`, the number of examples for which the law holds. A
    program has the value and the IRs of the first example. The artifact `example` has the first
    example as Python code; if the law does not hold, `falsifying` has the shrunk one.

    Args:
        observer: Runs the stages of the case.
        fn: Function of the case.
        env: First argument of the function.
        request: The request of the job.
        emit: Receives an event and its bytes.

    Returns:
        The function of the case with the first example as arguments, and whether the case ran and
        the law holds.
    """
    law, kind, params = request["law"], request["kind"], request["params"]
    try:
        examples = ExampleClient(law, getattr(fn, GIVEN))
    except CaseError as error:
        emit({"error": describe_error(error, fn)}, b"")
        return fn, False
    law_check = make_check(fn, kind, env, params, request)

    def check_all() -> int:
        start = time.perf_counter()
        try:
            return examples.check(law_check)
        finally:
            emit({"seconds": ["examples", time.perf_counter() - start]}, b"")

    # Wrapped, so that an error is located in the function of the case.
    @functools.wraps(fn)
    def observe_probe(*_: Any, **__: Any) -> Observed:
        count = {"examples": check_all()}
        return Observed(count, count)

    @functools.wraps(fn)
    def build_first(place: Env, **fixed: Any) -> Program:
        return build(fn, place, {**fixed, **decode(examples.first)})

    with examples:
        if kind == "probe":
            ran = observer.observe(observe_probe, kind, env, params)
        else:
            # Nothing is executed for a description of devices, and ranks would not agree on the
            # replies.
            runs = not env.compile_only and not distributed.is_distributed()
            ran = observer.observe(build_first, kind, env, params, check_all if runs else None)
    emit({"artifact": examples.artifact}, examples.text.encode())
    return build_first, ran
