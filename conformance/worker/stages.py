"""One case through its stages, reporting each result as soon as there is one."""

from __future__ import annotations

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


class Observer:
    """Runs the stages of one case and emits what each produced.

    Events, in order: `{"stage": NAME}` when one begins, `{"seconds": [NAME, S]}` when it ended,
    `{"seconds": ["call", S]}` of a warm call,
    `{"artifact": NAME}` with text, `{"value": HEAD}` and `{"reference": HEAD}` with bytes,
    `{"error": ...}` at most once, `{"unsupported": REASON}` at most once.

    Args:
        emit: Takes an event and its bytes; raises CaseError for what is too large.
        largest: Bytes that a value may have.
        calls: How often a compiled program is called once more, to see what a warm call takes.
    """

    def __init__(self, emit: Emit, largest: int = LARGEST, calls: int = 0) -> None:
        self._emit = emit
        self._largest = largest
        self._calls = calls

    def observe(self, fn: Callable[..., Any], kind: str, env: Env, params: dict[str, Any]) -> bool:
        """Observe one case; never raises for what the case does.

        Args:
            fn: The case's function.
            kind: `program` or `probe`.
            env: Handed to the function.
            params: Keyword arguments of the parametrisation.

        Returns:
            Whether it ran, and its reference is sound.
        """
        ran = False
        reference: Callable[[], Any] | None = None
        try:
            if kind == "program":
                with self._stage("build"):
                    built = build(fn, env, params)
                reference = bind_reference(built.reference, *env.values((built.args, built.kwargs)))
                self._program(built, env)
            else:
                with self._stage("execute"):
                    seen = fn(env, **params)
                    observed = seen if isinstance(seen, Observed) else Observed(seen)
                    reference = bind_reference(observed.reference, (), {})
                    self._artifacts(observed.artifacts)
                    self._value(observed.value)
            ran = True
        except Unsupported as reason:
            self._emit({"unsupported": str(reason)}, b"")
            return False
        except BaseException as error:  # any exception of a case is its observation
            self._emit({"error": describe_error(error, fn)}, b"")
        return self._reference(reference, fn) and ran

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        self._emit({"stage": name}, b"")
        start = time.perf_counter()
        try:
            yield
        finally:
            self._emit({"seconds": [name, time.perf_counter() - start]}, b"")

    def _program(self, built: Program, env: Env) -> None:
        compiled = self._compile(self._stage_out(built, env), env)
        if not env.compile_only:
            self._execute(compiled, built)

    def _stage_out(self, built: Program, env: Env) -> Any:
        """Trace a program, and return it lowered."""
        fn = jit_program(built)
        args, kwargs = built.args, built.kwargs
        if env.compile_only:
            args, kwargs = describe_arguments(built, _shape)
        elif distributed.is_distributed():
            args, kwargs = describe_arguments(built, distributed.describe_argument)
        with self._stage("trace"):
            traced = fn.trace(*args, **kwargs)
            self._capture(jaxpr=lambda: capture.render_jaxpr(traced))
        return self._lower(traced, env)

    def _compile(self, lowered: Any, env: Env) -> Any:
        with self._stage("compile"):
            compiled, hlo = capture.compile_with_text(lowered, env.compile)
            self._capture(
                hlo=hlo,
                cost=lambda: capture.render_cost(compiled),
                memory=lambda: capture.render_memory(compiled),
                layout=lambda: capture.render_layout(lowered, compiled),
            )
        return compiled

    def _execute(self, compiled: Any, built: Program) -> None:
        with self._stage("execute"):
            args, kwargs = select_dynamic(built)
            if distributed.is_distributed():
                args, kwargs = distributed.place_arguments((args, kwargs), compiled.input_shardings)
            given = self._copied((args, kwargs))
            result = jax.block_until_ready(compiled(*args, **kwargs))
            self._value(result)
        if self._calls:
            self._time_calls(compiled, given)

    def _copied(self, given: Any) -> Any:
        """Return arguments that are not deleted with those of a call that donates them."""
        if not self._calls:
            return given
        return jax.tree_util.tree_map(
            lambda leaf: leaf.copy() if isinstance(leaf, jax.Array) else leaf, given
        )

    def _time_calls(self, compiled: Any, given: Any) -> None:
        """Emit the seconds of the fastest warm call."""
        fastest = float("inf")
        for _ in range(self._calls):
            args, kwargs = jax.block_until_ready(self._copied(given))
            start = time.perf_counter()
            jax.block_until_ready(compiled(*args, **kwargs))
            fastest = min(fastest, time.perf_counter() - start)
        self._emit({"seconds": ["call", fastest]}, b"")

    def _lower(self, traced: Any, env: Env) -> Any:
        lowered, texts = None, {}
        try:
            with self._stage("lower"):
                lowered = env.lower(traced)
                texts = self._capture(stablehlo=lambda: capture.render_stablehlo(lowered))
        finally:  # what is refused here may be welcome elsewhere
            if env.cell.platform == "cpu":
                self._cross_lower(CrossLowering(traced, lowered, texts.get("stablehlo", "")))
        return lowered

    def _cross_lower(self, lowering: CrossLowering) -> None:
        start = time.perf_counter()
        self._capture(**lowering.artifacts())
        self._emit({"seconds": ["cross_lower", time.perf_counter() - start]}, b"")

    def _capture(self, **artifacts: Callable[[], str]) -> dict[str, str]:
        """Emit, and return, what is told; why not instead of what a release or backend cannot."""
        texts: dict[str, str] = {}
        for name, tell in artifacts.items():
            try:
                text = tell()
            except Exception as error:  # the program itself is unaffected
                name, text = f"no_{name}", f"{type(error).__name__}: {get_message(error)}"  # noqa: PLW2901
            self._text(name, text)
            texts[name] = text
        return texts

    def _artifacts(self, given: Mapping[str, Any]) -> None:
        for name, artifact in given.items():
            if isinstance(artifact, str):
                self._text(name, artifact)
            else:
                self._capture(**{name: lambda lowered=artifact: capture.render_stablehlo(lowered)})

    def _text(self, name: str, text: str) -> None:
        self._emit({"artifact": name}, text.encode("utf-8", "backslashreplace"))

    def _value(self, value: Any) -> None:
        head, data = flatten(value, largest=self._largest)
        if not head["leaves"] or all(leaf["dtype"] == "NoneType" for leaf in head["leaves"]):
            raise CaseError("the case captured nothing: its result has no leaves")
        self._emit({"value": head}, data)

    def _reference(self, reference: Callable[[], Any] | None, fn: Callable[..., Any]) -> bool:
        """Emit the reference of a case, if it has one; return whether nothing is wrong with it."""
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


def build(fn: Callable[..., Any], env: Env, params: dict[str, Any]) -> Program:
    """Return the program of a case.

    Args:
        fn: The case's function.
        env: Handed to it.
        params: Keyword arguments of the parametrisation.

    Raises:
        CaseError: If the case returns something else.
    """
    built = fn(env, **params)
    if isinstance(built, Program):
        return built
    kind = "nothing" if built is None else f"a {type(built).__name__}"
    raise CaseError(f"a program returned {kind}, expected a Program")


def bind_reference(reference: Any, args: Any, kwargs: Any) -> Callable[[], Any] | None:
    """Return what gives the reference of a case, None if it has none.

    Args:
        reference: As the case states it.
        args: Positional arguments that a callable one is handed.
        kwargs: Keyword arguments that it is handed.
    """
    if reference is None:
        return None
    if not callable(reference):
        return lambda: reference
    # Copied now: a program that donates its arguments deletes them.
    given_args, given_kwargs = jax.tree_util.tree_map(_as_numpy, (tuple(args), dict(kwargs)))
    return lambda: reference(*given_args, **given_kwargs)


def _as_numpy(leaf: Any) -> Any:
    return distributed.gather(leaf) if isinstance(leaf, jax.Array) and not is_key(leaf) else leaf


def is_key(array: jax.Array) -> bool:
    """Say whether an array is of typed PRNG keys."""
    return bool(jax.dtypes.issubdtype(array.dtype, jax.dtypes.prng_key))


def jit_program(built: Program) -> Any:
    """Return the function of a program under `jax.jit`; one that is already stays as it is."""
    # Not `hasattr(fn, "lower")`: wrappers may carry the attributes of what they wrap.
    already = isinstance(built.fn, type(jax.jit(lambda: None)))
    return built.fn if already else jax.jit(built.fn, **built.jit)


def find_static(built: Program) -> tuple[set[int], set[str]]:
    """Return the positions and names of static arguments."""
    numbers = built.jit.get("static_argnums", ())
    fixed = {numbers} if isinstance(numbers, int) else set(numbers)
    names = built.jit.get("static_argnames", ())
    named = {names} if isinstance(names, str) else set(names)
    return {n % len(built.args) for n in fixed} if built.args else set(), named


def select_dynamic(built: Program) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Leave static arguments out: a compiled function is called without them."""
    numbers, named = find_static(built)
    args = tuple(arg for n, arg in enumerate(built.args) if n not in numbers)
    return args, {name: value for name, value in built.kwargs.items() if name not in named}


def describe_arguments(
    built: Program, describe: Callable[[Any], Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return arguments by shape and dtype: values that lie on a device are not for another.

    Args:
        built: A program; its static arguments are left as they are.
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


def _shape(leaf: Any) -> Any:
    """Return a concrete array as uncommitted; what is described already stays so."""
    if not isinstance(leaf, jax.Array) or is_key(leaf):
        return leaf
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, weak_type=leaf.weak_type)


def describe_error(error: BaseException, fn: Callable[..., Any] | None = None) -> dict[str, Any]:
    """Return an exception as plain data.

    Args:
        error: What was raised.
        fn: The case's function; `where` is the last frame of its file.

    Returns:
        `{"type", "message", "where", "traceback", "frames"}`: the traceback as Python prints it,
        its last 20,000 characters, and as `conformance.worker.tracebacks` describes it.
    """
    described = describe_chain(error)
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return {
        "type": type(error).__name__,
        "message": get_message(error),
        "where": _where(error, fn, described),
        "traceback": text[-20_000:],
        "frames": described,
    }


def _where(
    error: BaseException, fn: Callable[..., Any] | None, described: list[dict[str, Any]]
) -> str:
    """Return the last line of the case's file that took part, else where the case begins.

    The file of a function that is run unmodified only names it: its place is in the user's code.
    """
    if fn is None or not hasattr(fn, "__code__"):
        return ""
    if fn.__globals__.get(HIDDEN):
        return find_innermost(described)
    file = fn.__code__.co_filename
    own = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
    return f"{file}:{own[-1].lineno if own else fn.__code__.co_firstlineno}"
