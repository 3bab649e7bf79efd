"""PartitionSpec where Python expects a tuple: in formatted text, sequences, tables."""

from __future__ import annotations

from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import refusal

defaults(platforms=("cpu",))

TUPLE_OF_VALUES = deviation(
    "jax<0.6.1",
    outcome="ok",
    reason="PartitionSpec was a subclass of tuple, so its entries were the values of the format",
    issue="jax-ml/jax@17b02ecb1b0e",
)


@probe(source="jax-ml/jax@17b02ecb1b0e", deviations=[TUPLE_OF_VALUES])
def formatted_by_percent(env):
    """`"spec %s" % P("x")` has the spec from 0.6.1 on; before, silently `spec x`.

    With two axes, it was a TypeError.
    """
    spec, pair = P("x"), P("x", "y")
    outcome = refusal(lambda: "spec %s" % pair, "not all arguments")  # noqa: UP031
    text = "spec %s" % spec  # noqa: UP031
    return Observed({"one": text == f"spec {spec}", "two": outcome}, {"one": True, "two": "ran"})


LIST_WAS_KEPT = deviation(
    "jax<0.5.3",
    error="TypeError",
    match="unhashable type: 'list'",
    reason="the list of axes stayed a list",
    issue="jax-ml/jax@177e1f6ed99d",
)


@probe(source="jax-ml/jax@177e1f6ed99d", deviations=[LIST_WAS_KEPT])
def key_of_a_table(env):
    """A spec with a list of axes, `P(["x", "y"])`, can be a key of a table from 0.5.3 on."""
    table = {P(("x", "y")): 1}
    return Observed(table.get(P(["x", "y"])), reference=1)


NONE_IS_NO_AXIS = deviation(
    "jax>=0.6.2,<0.10.1",
    error="TypeError",
    match="canonicalize_partition",
    reason="the argument was made canonical by C++, which took no None",
    issue="jax-ml/jax@8478fe6e7b43",
)


@probe(source="jax-ml/jax@8478fe6e7b43", deviations=[NONE_IS_NO_AXIS])
def number_of_whole_dimensions(env):
    """`P("x", None).count(None)` counts the dimensions without an axis.

    From 0.6.2 to 0.10.0, it was a TypeError.
    """
    return Observed(P("x", None, None).count(None), reference=2)


NO_SEQUENCE = deviation(
    "jax>=0.6.1",
    outcome="ok",
    reason="PartitionSpec is no longer a subclass of tuple, and not registered as a sequence",
    issue="jax-ml/jax@17b02ecb1b0e",
)


@probe(source="jax-ml/jax@17b02ecb1b0e", deviations=[NO_SEQUENCE])
def matched_by_a_pattern(env):
    """`match P("x", "y")` takes `case ("x", "y")`, up to 0.6.0; after, silently the next."""
    match P("x", "y"):
        case ("x", "y"):
            found = "axes"
        case _:
            found = "nothing"
    return Observed(found, reference="axes")


@probe(source="jax-ml/jax@17b02ecb1b0e", deviations=[NO_SEQUENCE])
def repeated(env):
    """`P(None) * 2` has two entries, up to 0.6.0; after, it is a TypeError."""
    return Observed(refusal(lambda: P(None) * 2), reference="ran")
