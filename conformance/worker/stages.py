"""Runs one case through its stages, and emits each result as soon as it exists."""

from __future__ import annotations

import inspect
import time
import traceback
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import jax

from conformance.kit import distributed
from conformance.kit.case import CaseError, Observed, Program, Raises, Unsupported
from conformance.worker import capture
from conformance.worker.capture import CrossLowering
from conformance.worker.tracebacks import HIDDEN, describe_chain, find_innermost, get_message
from conformance.worker.values import LARGEST, flatten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from conformance.kit.env import Env

    Emit = Callable[[dict[str, Any], bytes], None]

FALSIFYING = "__conformance_falsifying__"
"""Attribute of an error with the example, as Python code, for which a law does not hold."""


class Observer:
    """Runs the stages of one case, and emits the results of each.

    Events, in order: `{"stage": NAME}` when a stage begins, `{"seconds": [NAME, S]}` when it has
    ended, `{"artifact": NAME}` with text, `{"value": HEAD}` and `{"reference": HEAD}` with bytes,
    `{"error": ...}` at most once, `{"unsupported": REASON}` at most once.

    Args:
        emit: Receives an event and its bytes; raises CaseError if the observation is too large.
        largest: Limit of the bytes of a value.
    """

    def __init__(self, emit: Emit, largest: int = LARGEST) -> None:
        self._emit = emit
        self._largest = largest

    def observe(
        self,
        fn: Callable[..., Any],
        kind: str,
        env: Env,
        params: dict[str, Any],
        check: Callable[[], object] | None = None,
    ) -> bool:
        """Observe one case; its exceptions are emitted, not raised.

        Args:
            fn: Function of the case.
            kind: `program` or `probe`.
            env: First argument of the function.
            params: Keyword arguments of the parametrisation.
            check: Called after a program has run; raises if the program is wrong.

        Returns:
            Whether the case ran, and its reference could be computed.
        """
        ran = False
        reference: Callable[[], Any] | None = None
        try:
            if kind == "program":
                with self._run_stage("build"):
                    built = build(fn, env, params)
                reference = bind_reference(built.reference, *env.values((built.args, built.kwargs)))
                self._run_program(built, env)
                if check is not None:
                    check()
            else:
                with self._run_stage("execute"):
                    seen = fn(env, **params)
                    observed = seen if isinstance(seen, Observed) else Observed(seen)
                    reference = bind_reference(observed.reference, (), {})
                    self._emit_artifacts(observed.artifacts)
                    self._emit_value(observed.value)
            ran = True
        except Unsupported as reason:
            self._emit({"unsupported": str(reason)}, b"")
            return False
        except BaseException as error:  # any exception of a case is its observation
            self._emit({"error": describe_error(error, fn)}, b"")
        # Last, and also after a failure: a crash in the reference must not cost the observation,
        # and a reference may be the error that is expected.
        return self._emit_reference(reference, fn) and ran

    @contextmanager
    def _run_stage(self, name: str) -> Iterator[None]:
        self._emit({"stage": name}, b"")
        start = time.perf_counter()
        try:
            yield
        finally:
            self._emit({"seconds": [name, time.perf_counter() - start]}, b"")

    def _run_program(self, built: Program, env: Env) -> None:
        compiled = self._compile(self._stage_out(built, env), env)
        if not env.compile_only:
            self._execute(compiled, built)

    def _stage_out(self, built: Program, env: Env) -> Any:
        """Trace and lower a program, and return the lowered program."""
        fn = jit_program(built)
        args, kwargs = built.args, built.kwargs
        # Arrays are on the devices of this host, the program is for the devices of a topology.
        if env.compile_only:
            args, kwargs = describe_arguments(built, describe_shape)
        elif distributed.is_distributed():
            args, kwargs = describe_arguments(built, distributed.describe_argument)
        with self._run_stage("trace"):
            traced = fn.trace(*args, **kwargs)
            self._capture(jaxpr=lambda: capture.render_jaxpr(traced))
        return self._lower(traced, env)

    def _compile(self, lowered: Any, env: Env) -> Any:
        with self._run_stage("compile"):
            compiled, hlo = capture.compile_with_text(lowered, env.compile)
            self._capture(
                hlo=hlo,
                cost=lambda: capture.render_cost(compiled),
                memory=lambda: capture.render_memory(compiled),
                layout=lambda: capture.render_layout(lowered, compiled),
            )
        return compiled

    def _execute(self, compiled: Any, built: Program) -> None:
        with self._run_stage("execute"):
            args, kwargs = select_dynamic(built)
            if distributed.is_distributed():
                args, kwargs = distributed.place_arguments((args, kwargs), compiled.input_shardings)
            result = jax.block_until_ready(compiled(*args, **kwargs))
            self._emit_value(result)

    def _lower(self, traced: Any, env: Env) -> Any:
        lowered, texts = None, {}
        try:
            with self._run_stage("lower"):
                lowered = env.lower(traced)
                texts = self._capture(stablehlo=lambda: capture.render_stablehlo(lowered))
        finally:  # a program that this platform refuses may be lowered for others
            if env.cell.platform == "cpu":
                self._cross_lower(CrossLowering(traced, lowered, texts.get("stablehlo", "")))
        return lowered

    def _cross_lower(self, lowering: CrossLowering) -> None:
        start = time.perf_counter()
        self._capture(**lowering.make_renderers())
        self._emit({"seconds": ["cross_lower", time.perf_counter() - start]}, b"")

    def _capture(self, **artifacts: Callable[[], str]) -> dict[str, str]:
        """Emit and return artifacts by name; `no_NAME` with the reason if NAME is unavailable."""
        texts: dict[str, str] = {}
        for name, render in artifacts.items():
            try:
                text = render()
            except Exception as error:  # the program itself is unaffected
                name, text = f"no_{name}", f"{type(error).__name__}: {get_message(error)}"  # noqa: PLW2901
            self._emit_text(name, text)
            texts[name] = text
        return texts

    def _emit_artifacts(self, artifacts: Mapping[str, Any]) -> None:
        for name, artifact in artifacts.items():
            if isinstance(artifact, str):
                self._emit_text(name, artifact)
            else:
                self._capture(**{name: lambda lowered=artifact: capture.render_stablehlo(lowered)})

    def _emit_text(self, name: str, text: str) -> None:
        self._emit({"artifact": name}, text.encode("utf-8", "backslashreplace"))

    def _emit_value(self, value: Any) -> None:
        head, data = flatten(value, largest=self._largest)
        # A probe that forgets its `return` would conform on every release.
        if not head["leaves"] or all(leaf["dtype"] == "NoneType" for leaf in head["leaves"]):
            raise CaseError("the case captured nothing: its result has no leaves")
        self._emit({"value": head}, data)

    def _emit_reference(self, reference: Callable[[], Any] | None, fn: Callable[..., Any]) -> bool:
        """Emit the reference of a case, if it has one; return whether it could be computed."""
        if reference is None:
            return True
        try:
            expected = reference()
            if isinstance(expected, Raises):
                self._emit({"raises": {"type": expected.type, "match": expected.match}}, b"")
                return True
            head, data = flatten(expected, largest=self._largest)
            self._emit({"reference": head}, data)
        except BaseException as error:  # a broken reference is the case's fault
            wrong = CaseError(f"the reference raised {type(error).__name__}: {error}")
            self._emit({"error": describe_error(wrong, fn)}, b"")
            return False
        return True


def copy_arrays(arguments: Any) -> Any:
    """Return arguments with a copy of each array, which a call may delete.

    Args:
        arguments: Any pytree.
    """
    return jax.tree_util.tree_map(
        lambda leaf: leaf.copy() if isinstance(leaf, jax.Array) else leaf, arguments
    )


def build(fn: Callable[..., Any], env: Env, params: dict[str, Any]) -> Program:
    """Return the program of a case.

    Args:
        fn: Function of the case.
        env: First argument of the function.
        params: Keyword arguments of the parametrisation.

    Raises:
        CaseError: If the function returns something else.
    """
    built = fn(env, **params)
    if isinstance(built, Program):
        return built
    kind = "nothing" if built is None else f"a {type(built).__name__}"
    raise CaseError(f"a program returned {kind}, expected a Program")


def bind_reference(reference: Any, args: Any, kwargs: Any) -> Callable[[], Any] | None:
    """Return a function that computes the reference of a case, None if it has none.

    Args:
        reference: Reference of the case: a value, or a function of the program's arguments.
        args: Positional arguments of the program.
        kwargs: Keyword arguments of the program.
    """
    if reference is None:
        return None
    if not callable(reference):
        return lambda: reference
    # Copied now: a program that donates its arguments deletes them.
    own_args, own_kwargs = jax.tree_util.tree_map(_to_numpy, (tuple(args), dict(kwargs)))
    return lambda: reference(*own_args, **own_kwargs)


def _to_numpy(leaf: Any) -> Any:
    return distributed.gather(leaf) if isinstance(leaf, jax.Array) and not is_key(leaf) else leaf


def is_key(array: jax.Array) -> bool:
    """Say whether an array is of typed PRNG keys."""
    return bool(jax.dtypes.issubdtype(array.dtype, jax.dtypes.prng_key))


def jit_program(built: Program) -> Any:
    """Return the function of a program under `jax.jit`, unchanged if it is jitted already."""
    # Not `hasattr(fn, "lower")`: up to 0.5.3 the wrapper of `compute_on` has the attributes of the
    # jitted function in it, and lowering that would bypass the wrapper.
    already = isinstance(built.fn, type(jax.jit(lambda: None)))
    return built.fn if already else jax.jit(built.fn, **built.jit)


def find_static(built: Program) -> tuple[set[int], set[str]]:
    """Return the positions and names of static arguments."""
    numbers = built.jit.get("static_argnums", ())
    fixed = {numbers} if isinstance(numbers, int) else set(numbers)
    names = built.jit.get("static_argnames", ())
    named = {names} if isinstance(names, str) else set(names)
    # `jax.jit` accepts negative positions.
    return {n % len(built.args) for n in fixed} if built.args else set(), named


def select_dynamic(built: Program) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Leave static arguments out: a compiled function is called without them."""
    numbers, named = find_static(built)
    args = tuple(arg for n, arg in enumerate(built.args) if n not in numbers)
    return args, {name: value for name, value in built.kwargs.items() if name not in named}


def describe_arguments(
    built: Program, describe: Callable[[Any], Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return arguments with each leaf described, e.g. by shape and dtype.

    Args:
        built: The program; its static arguments stay unchanged.
        describe: Describes a leaf.

    Returns:
        Positional and keyword arguments.
    """
    numbers, named = find_static(built)
    args = [
        arg if n in numbers else jax.tree_util.tree_map(describe, arg)
        for n, arg in enumerate(built.args)
    ]
    return tuple(args), {
        name: value if name in named else jax.tree_util.tree_map(describe, value)
        for name, value in built.kwargs.items()
    }


def describe_shape(leaf: Any) -> Any:
    """Return the shape and dtype of an array, without its device; other leaves stay unchanged.

    Args:
        leaf: A leaf of the arguments of a program.
    """
    if not isinstance(leaf, jax.Array) or is_key(leaf):
        return leaf
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, weak_type=leaf.weak_type)


def describe_error(error: BaseException, fn: Callable[..., Any] | None = None) -> dict[str, Any]:
    """Return an exception as plain data.

    Args:
        error: Exception to describe.
        fn: Function of the case; `where` is the last frame of its file.

    Returns:
        `{"type", "message", "where", "traceback", "frames"}`: the traceback as Python prints it,
        its last 20,000 characters, and as `conformance.worker.tracebacks` describes it.
    """
    # The end of a text that is too long, because it has the innermost frames and the message.
    described = describe_chain(error)
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return {
        "type": type(error).__name__,
        "message": _append_example(get_message(error), getattr(error, FALSIFYING, "")),
        "where": _find_where(error, fn, described),
        "traceback": text[-20_000:],
        "frames": described,
    }


def _append_example(message: str, example: str) -> str:
    return f"{message}\nfalsifying example: {example}" if example else message


def _find_where(
    error: BaseException, fn: Callable[..., Any] | None, described: list[dict[str, Any]]
) -> str:
    """Return the last line of the case's file in the traceback, else the first line of the case.

    The generated case file of a user's function only calls that function: the place of an error is
    in the user's code.
    """
    fn = None if fn is None else inspect.unwrap(fn)
    if fn is None or not hasattr(fn, "__code__"):
        return ""
    if fn.__globals__.get(HIDDEN):
        return find_innermost(described)
    file = fn.__code__.co_filename
    own = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
    return f"{file}:{own[-1].lineno if own else fn.__code__.co_firstlineno}"
