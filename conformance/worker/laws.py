"""Laws inside a job: each example that the example server draws is checked, and answered.

A case with `given` is a function of its examples. A probe checks the law itself. A program is
observed with the first example, the simplest; then its reference and its variants are checked with
every example.
"""

from __future__ import annotations

import functools
import time
from typing import TYPE_CHECKING, Any

import jax

from conformance.kit import distributed
from conformance.kit.case import GIVEN, CaseError, Observed, Program, Raises
from conformance.kit.laws import LawError, check_same
from conformance.worker.example_client import ExampleClient
from conformance.worker.example_codec import decode
from conformance.worker.stages import (
    bind_reference,
    build,
    describe_error,
    jit_program,
    select_dynamic,
)
from conformance.worker.variants import VARIANTS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from conformance.kit.env import Env
    from conformance.worker.example_client import Check
    from conformance.worker.stages import Emit, Observer


def check_program(
    make: Callable[[Env], Program],
    env: Env,
    names: list[str],
    law: Mapping[str, Any],
    compiled: dict[str, Any],
) -> None:
    """Check the reference and the variants of a program for one example.

    Args:
        make: Builds the program, from which each variant needs fresh arguments.
        env: Environment of the case.
        names: Variants that the case claims.
        law: Settings of the law, with the tolerance of the case.
        compiled: Compiled programs of earlier examples, by the text of their StableHLO.

    Raises:
        LawError: If the value differs from the reference, or from a variant.
        CaseError: If there is neither a reference nor a variant.
    """
    built = make(env)
    if built.reference is None and not names:
        raise CaseError("a program with given has no reference and no same_as: it claims nothing")
    expected = bind_reference(built.reference, *env.values((built.args, built.kwargs)))
    value = _run_program(built, compiled)
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
    compiled: dict[str, Any] = {}
    if kind == "probe":
        return lambda example: _check_nothing(fn(env, **params, **example))
    return lambda example: check_program(
        lambda place: build(fn, place, {**params, **example}), env, names, law, compiled
    )


def _run_program(built: Program, compiled: dict[str, Any]) -> Any:
    # Each example makes a new function, which jax would compile again. Constants are in the text,
    # so that programs which close over their example differ.
    lowered = jit_program(built).lower(*built.args, **built.kwargs)
    text = lowered.as_text()
    if text not in compiled:
        compiled[text] = lowered.compile()
    args, kwargs = select_dynamic(built)
    return jax.block_until_ready(compiled[text](*args, **kwargs))


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
