"""Draws and shrinks the examples of a law with Hypothesis, in a process of its own.

A job in a cell starts it. Both ends write lines of JSON. The first line has the settings of
`conformance.laws.launch` and the descriptions of the strategies. The server then sends
`{"example": VALUES, "text": CODE}` for each example and reads `{"reply": "holds"}`, `"rejected"`,
or the type of the error with which the law fails. Its last line is `{"holds": COUNT}`,
`{"falsified": CODE}` after Hypothesis has run the shrunk example once more, or `{"wrong": REASON}`
if the strategies are wrong.
"""

from __future__ import annotations

import difflib
import json
import sys
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import hypothesis
import numpy as np
from hypothesis import HealthCheck, Phase, strategies
from hypothesis.errors import Flaky, HypothesisException
from hypothesis.extra import numpy as numpy_strategies

from conformance.laws.reproducible import without_local_constants
from conformance.laws.spelling import spell_example
from conformance.worker.example_codec import decode, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TextIO

    from hypothesis.strategies import SearchStrategy

HOLDS: Final = "holds"
REJECTED: Final = "rejected"
BOUND: Final = 8
"""Largest magnitude of the elements of arrays by default."""
_FLOATS: Final = {"min_value": -BOUND, "max_value": BOUND, "allow_subnormal": False}
_ELEMENTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "f": _FLOATS,
    "V": _FLOATS,
    "c": {"max_magnitude": BOUND, "allow_nan": False, "allow_subnormal": False},
}
"""Default elements of arrays, by kind of dtype; the types of `ml_dtypes` are void to NumPy."""


_REFUSALS: Final = (AttributeError, TypeError, ValueError)
"""Errors of wrong arguments, in addition to those of Hypothesis."""


class FalsifiedError(Exception):
    """The law does not hold for an example."""


class WrongStrategyError(Exception):
    """A strategy that Hypothesis does not have, or refuses."""


def main() -> None:
    """Serve one law on standard input and output."""
    _send(sys.stdout, serve(json.loads(sys.stdin.readline()), _ask))


def _ask(message: Mapping[str, Any]) -> str:
    _send(sys.stdout, message)
    line = sys.stdin.readline()
    if not line:  # the job has ended
        raise SystemExit
    return str(json.loads(line)["reply"])


def _send(stream: TextIO, message: Mapping[str, Any]) -> None:
    stream.write(json.dumps(message) + "\n")
    stream.flush()


def serve(request: Mapping[str, Any], ask: Callable[[Mapping[str, Any]], str]) -> dict[str, Any]:
    """Check a law on examples, and shrink the first one for which it does not hold.

    Args:
        request: `given` (descriptions of strategies by parameter), `seed` and `examples`.
        ask: Sends a message with an example, and returns the reply.

    Returns:
        The last message.
    """
    held, falsified = 0, ""
    try:
        drawn = strategies.fixed_dictionaries({
            name: _make_parameter(name, data) for name, data in request["given"].items()
        })  # fmt: skip

        @hypothesis.seed(request["seed"])
        @hypothesis.settings(
            max_examples=request["examples"], database=None, deadline=None, derandomize=False,
            phases=[Phase.generate, Phase.shrink], report_multiple_bugs=False, print_blob=False,
            suppress_health_check=list(HealthCheck), verbosity=hypothesis.Verbosity.quiet,
        )  # fmt: skip
        @hypothesis.given(drawn)
        def check(example: dict[str, Any]) -> None:
            nonlocal held, falsified
            # Hypothesis shuffles dictionaries.
            example = {name: example[name] for name in request["given"]}
            text = spell_example(example)
            reply = ask({"example": _encode(example), "text": text})
            if reply == HOLDS:
                held += 1
                return
            if reply == REJECTED:
                hypothesis.reject()
            falsified = text
            # Hypothesis shrinks an error to one of the same type.
            raise _make_error_type(reply)

        with without_local_constants():
            check()
    except FalsifiedError:
        return {"falsified": falsified}
    except Flaky:
        return {"wrong": f"the law does not always fail for\n{falsified}"}
    except WrongStrategyError as error:
        return {"wrong": str(error)}
    except HypothesisException as error:
        return {"wrong": f"{type(error).__name__}: {error}"}
    return {HOLDS: held}


@cache
def _make_error_type(name: str) -> type[FalsifiedError]:
    return type(name, (FalsifiedError,), {})


def _encode(example: Mapping[str, Any]) -> Any:
    try:
        return encode(dict(example))
    except TypeError as error:
        raise WrongStrategyError(f"given draws a value that cannot be sent: {error}") from None


def _make_parameter(name: str, data: Any) -> SearchStrategy[Any]:
    try:
        # A value that is no strategy has no such method: an `AttributeError`.
        strategy: SearchStrategy[Any] = decode(data, make_strategy)
        strategy.validate()
    except (HypothesisException, WrongStrategyError, *_REFUSALS) as error:
        raise WrongStrategyError(f"given, {name}: {error}") from None
    return strategy


def make_strategy(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> SearchStrategy[Any]:
    """Return the strategy of a description.

    Args:
        name: Name of a function of Hypothesis.
        args: Its positional arguments.
        kwargs: Its keyword arguments.

    Raises:
        WrongStrategyError: If Hypothesis has no such function.
    """
    if name == "arrays":
        return _make_arrays(*args, **kwargs)
    for module in (strategies, numpy_strategies):
        if name in module.__all__:
            made: SearchStrategy[Any] = getattr(module, name)(*args, **kwargs)
            return made
    known = (*strategies.__all__, *numpy_strategies.__all__)
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise WrongStrategyError(f"Hypothesis has no strategy {name}{hint}")


def _make_arrays(
    dtype: Any, shape: Any, *, elements: Any = None, **kwargs: Any
) -> SearchStrategy[Any]:
    wanted = dtype if isinstance(dtype, np.dtype) else decode({"dtype": str(dtype)})
    # Hypothesis draws no types of ml_dtypes.
    drawn = np.dtype(np.float16) if wanted.kind == "V" else wanted
    if elements is None:
        elements = dict(_ELEMENTS.get(wanted.kind, {}))
    made = numpy_strategies.arrays(drawn, shape, elements=elements, **kwargs)
    return made if drawn == wanted else made.map(lambda array: array.astype(wanted))
