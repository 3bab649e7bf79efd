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
