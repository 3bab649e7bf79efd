"""One case through its stages, reporting each result as soon as there is one."""

from __future__ import annotations

import json
import time
import traceback
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from conformance.kit.case import CaseError, Observed, Program, Raises, Unsupported
from conformance.kit.values import describe_sharding, flatten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conformance.kit.env import Env

    Emit = Callable[[dict[str, Any], bytes], None]

MEMORY_FIELDS = (
    "generated_code_size_in_bytes",
    "argument_size_in_bytes",
    "output_size_in_bytes",
    "alias_size_in_bytes",
    "temp_size_in_bytes",
    "peak_memory_in_bytes",
)


class Observer:
    """Runs the stages of one case and emits what each produced.

    Events, in order: `{"stage": NAME}` when one begins, `{"seconds": [NAME, S]}` when it ended,
    `{"artifact": NAME}` with text, `{"value": HEAD}` and `{"reference": HEAD}` with bytes,
    `{"error": ...}` at most once, `{"unsupported": REASON}` at most once.
    """

    def __init__(self, emit: Emit) -> None:
        self._emit = emit

    def observe(self, fn: Callable[..., Any], kind: str, env: Env, params: dict[str, Any]) -> None:
        """Observe one case; never raises for what the case does.

        Args:
            fn: The case's function.
            kind: `program` or `probe`.
            env: Handed to the function.
            params: Keyword arguments of the parametrisation.
        """
        reference: Callable[[], Any] | None = None
        try:
            if kind == "program":
                with self._stage("build"):
                    built = _build(fn, env, params)
                reference = _reference(built.reference, built.args, built.kwargs)
                self._program(built)
            else:
                with self._stage("execute"):
                    seen = fn(env, **params)
                    observed = seen if isinstance(seen, Observed) else Observed(seen)
                    reference = _reference(observed.reference, (), {})
                    for name, text in observed.artifacts.items():
                        self._text(name, text)
                    self._value(observed.value)
        except Unsupported as reason:
            self._emit({"unsupported": str(reason)}, b"")
            return
        except BaseException as error:  # noqa: BLE001 - whatever a case raises is its observation
            self._emit({"error": describe_error(error, fn)}, b"")
        self._reference(reference, fn)

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        self._emit({"stage": name}, b"")
        start = time.perf_counter()
        try:
            yield
        finally:
            self._emit({"seconds": [name, time.perf_counter() - start]}, b"")

    def _program(self, built: Program) -> None:
        # Not `hasattr(fn, "lower")`: wrappers may carry the attributes of what they wrap.
        jitted = isinstance(built.fn, type(jax.jit(lambda: None)))
        fn: Any = built.fn if jitted else jax.jit(built.fn, **built.jit)
        with self._stage("trace"):
            traced = fn.trace(*built.args, **built.kwargs)
            self._text("jaxpr", str(traced.jaxpr))
        with self._stage("lower"):
            lowered = traced.lower()
            self._text("stablehlo", lowered.as_text())
        with self._stage("compile"):
            compiled = lowered.compile()
            self._compiled(compiled)
        with self._stage("execute"):
            args, kwargs = _dynamic(built)
            result = jax.block_until_ready(compiled(*args, **kwargs))
            self._value(result)

    def _compiled(self, compiled: Any) -> None:
        self._optional("hlo", compiled.as_text)
        self._optional("cost", lambda: _cost(compiled))
        self._optional("memory", lambda: _memory(compiled))
        self._optional("layout", lambda: _layout(compiled))

    def _optional(self, name: str, capture: Callable[[], str | None]) -> None:
        """Capture what not every release and backend can give; its absence is no error."""
        try:
            text = capture()
        except Exception:  # noqa: BLE001 - a release that cannot say leaves the artifact out
            return
        if text:
            self._text(name, text)

    def _text(self, name: str, text: str) -> None:
        self._emit({"artifact": name}, text.encode("utf-8", "surrogatepass"))

    def _value(self, value: Any) -> None:
        head, data = flatten(value)
        if not head["leaves"] or all(leaf["dtype"] == "NoneType" for leaf in head["leaves"]):
            raise CaseError("the case captured nothing: its result has no leaves")
        self._emit({"value": head}, data)

    def _reference(self, reference: Callable[[], Any] | None, fn: Callable[..., Any]) -> None:
        if reference is None:
            return
        try:
            expected = reference()
            if isinstance(expected, Raises):
                self._emit({"raises": {"type": expected.type, "match": expected.match}}, b"")
                return
            head, data = flatten(expected)
        except BaseException as error:  # noqa: BLE001 - a broken reference is the case's fault
            wrong = CaseError(f"the reference raised {type(error).__name__}: {error}")
            self._emit({"error": describe_error(wrong, fn)}, b"")
            return
        self._emit({"reference": head}, data)


def _build(fn: Callable[..., Any], env: Env, params: dict[str, Any]) -> Program:
    built = fn(env, **params)
    if isinstance(built, Program):
        return built
    kind = "nothing" if built is None else f"a {type(built).__name__}"
    raise CaseError(f"a program returned {kind}, expected a Program")


def _reference(reference: Any, args: Any, kwargs: Any) -> Callable[[], Any] | None:
    if reference is None:
        return None
    if not callable(reference):
        return lambda: reference
    # Copied now: a program that donates its arguments deletes them.
    given_args, given_kwargs = jax.tree_util.tree_map(_as_numpy, (tuple(args), dict(kwargs)))
    return lambda: reference(*given_args, **given_kwargs)


def _as_numpy(leaf: Any) -> Any:
    is_key = isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return np.array(leaf) if isinstance(leaf, jax.Array) and not is_key else leaf


def _dynamic(built: Program) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Leave static arguments out: a compiled function is called without them."""
    numbers = built.jit.get("static_argnums", ())
    static = {numbers} if isinstance(numbers, int) else set(numbers)
    static = {n % len(built.args) for n in static} if built.args else set()
    names = built.jit.get("static_argnames", ())
    hidden = {names} if isinstance(names, str) else set(names)
    args = tuple(arg for n, arg in enumerate(built.args) if n not in static)
    return args, {name: value for name, value in built.kwargs.items() if name not in hidden}


def _cost(compiled: Any) -> str:
    cost = compiled.cost_analysis()
    if isinstance(cost, list):  # a list of one up to 0.4.35
        cost = cost[0] if cost else {}
    return json.dumps({k: float(v) for k, v in sorted((cost or {}).items())}, indent=1)


def _memory(compiled: Any) -> str | None:
    memory = compiled.memory_analysis()
    sizes = {name: getattr(memory, name) for name in MEMORY_FIELDS if hasattr(memory, name)}
    return json.dumps(sizes, indent=1) if sizes else None


def _layout(compiled: Any) -> str:
    """Return input and output shardings as device-to-tile maps, and what is donated."""
    info, _ = jax.tree_util.tree_flatten(compiled.args_info)
    shapes = [tuple(getattr(arg, "shape", ())) for arg in info]
    inputs = jax.tree_util.tree_leaves(compiled.input_shardings)
    outputs = jax.tree_util.tree_leaves(compiled.output_shardings)
    layout = {
        "inputs": [
            describe_sharding(sharding, shape)
            for sharding, shape in zip(inputs, shapes, strict=False)
        ],
        "outputs": [str(getattr(sharding, "spec", "single")) for sharding in outputs],
        "donated": [bool(getattr(arg, "donated", False)) for arg in info],
    }
    return json.dumps(layout, indent=1)


def _said(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as odd:  # noqa: BLE001 - an exception may be of the case's own making
        return f"<its message raised {type(odd).__name__}>"


def describe_error(error: BaseException, fn: Callable[..., Any] | None = None) -> dict[str, Any]:
    """Return an exception as plain data.

    Args:
        error: What was raised.
        fn: The case's function; `where` is the last frame of its file.

    Returns:
        `{"type", "message", "where", "traceback"}`, the traceback at most 20,000 characters.
    """
    frames = traceback.extract_tb(error.__traceback__)
    file = fn.__code__.co_filename if fn is not None and hasattr(fn, "__code__") else None
    own = [frame for frame in frames if frame.filename == file]
    where = f"{own[-1].filename}:{own[-1].lineno}" if own else ""
    if not where and fn is not None and hasattr(fn, "__code__"):
        where = f"{fn.__code__.co_filename}:{fn.__code__.co_firstlineno}"
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return {
        "type": type(error).__name__,
        "message": _said(error),
        "where": where,
        "traceback": text[-20_000:],
    }
