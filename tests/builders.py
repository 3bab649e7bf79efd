"""Short spellings of cases, values and observations for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from conformance.model.case import Case, Deviation
from conformance.model.observation import Observation
from conformance.model.outcome import Outcome, Stage
from conformance.model.record import ErrorInfo
from conformance.model.value import Leaf, Value


def leaf(array: Any, path: str = "out", kind: str = "array", **more: Any) -> Leaf:
    """Return an array, or anything that NumPy converts to one, as a leaf."""
    array = np.asarray(array)
    return Leaf(
        path=path,
        kind=kind,
        dtype=array.dtype.name,
        shape=array.shape,
        data=np.ascontiguousarray(array).tobytes(),
        **more,
    )


def python(thing: Any, path: str = "out") -> Leaf:
    """Return a Python scalar as a leaf."""
    return Leaf(path=path, kind="python", dtype=type(thing).__name__, data=repr(thing).encode())


def value(*leaves: Any, structure: str = "") -> Value:
    """Return leaves, or arrays named `out[i]` (`out` when alone), as a value."""
    many = len(leaves) > 1
    made = tuple(
        thing if isinstance(thing, Leaf) else leaf(thing, f"out[{i}]" if many else "out")
        for i, thing in enumerate(leaves)
    )
    return Value(structure=structure or f"({'*, ' * len(made)})", leaves=made)


def f32(*numbers: float) -> Value:
    """Return one float32 vector as a value."""
    return value(np.array(numbers, np.float32))


def f64(*numbers: float) -> Value:
    """Return one NumPy float64 vector, as references are, as a value."""
    return value(leaf(np.array(numbers, np.float64), kind="numpy"))


def case(id_: str = "family/name", **more: Any) -> Case:
    """Return a case of topic `topic`."""
    return Case(
        id=id_,
        family=id_.partition("/")[0],
        topic="topic",
        file=Path("cases/family/topic.py"),
        line=7,
        **{"kind": "program", "name": "name", **more},
    )


def ok(seen: Value | None = None, **more: Any) -> Observation:
    """Return an observation of a job that ended well."""
    return Observation(outcome=Outcome.OK, stage=Stage.EXECUTE, value=seen, **more)


def raised(type_: str = "ValueError", message: str = "bad shape", **more: Any) -> Observation:
    """Return an observation of a job that raised while it was traced."""
    error = ErrorInfo(type=type_, message=message)
    return Observation(outcome=Outcome.RAISED, stage=Stage.TRACE, error=error, **more)


def ended(outcome: Outcome, **more: Any) -> Observation:
    """Return an observation of a job that ended in any way while it executed."""
    return Observation(outcome=outcome, stage=Stage.EXECUTE, **more)


def deviation(releases: str = "<0.6", **more: Any) -> Deviation:
    """Return a declared deviation with an upstream thread."""
    return Deviation(releases=releases, issue="jax-ml/jax#1", **more)
