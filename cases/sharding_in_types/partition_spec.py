"""PartitionSpec as a value: its equality, hash and printed form, and how specs are joined.

It was a tuple up to 0.6.0, and code treats it as a tuple: compares it with tuples, sorts it, uses
it as a key among tuples, adds to it. These uses ended in steps: the base class in 0.6.1, equality
with tuples in 0.10.0. `tuple(spec)` or `P(*spec)` replaces them everywhere.
"""

from __future__ import annotations

import json
import pickle

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import refusal

from ._helpers import describe_outcome

defaults(platforms=("cpu",))


SUBCLASS_OF_TUPLE = deviation(
    "jax<0.6.1",
    outcome="ok",
    reason="PartitionSpec was a subclass of tuple",
    issue="jax-ml/jax@17b02ecb1b0e",
)


@probe(source="jax-ml/jax@17b02ecb1b0e", deviations=[SUBCLASS_OF_TUPLE])
def is_no_tuple(env):
    """`isinstance(spec, tuple)` is False from 0.6.1; length, index and iteration stay."""
    spec = P("x", None, ("y", "z"))
    return Observed(
        {
            "tuple": isinstance(spec, tuple),
            "length": len(spec),
            "last": spec[-1],
            "entries": [str(entry) for entry in spec],
            "slice": type(spec[:2]).__name__,
        },
        {
            "tuple": False,
            "length": 3,
            "last": ("y", "z"),
            "entries": ["x", "None", "('y', 'z')"],
            "slice": "tuple",
        },
    )


EQUAL_TO_A_TUPLE = deviation(
    "jax<0.10",
    outcome="ok",
    reason="a PartitionSpec was equal to a tuple of the same entries",
    issue="jax-ml/jax@b52e741ed011",
)


@probe(
    source="jax-ml/jax@b52e741ed011",
    params={"spec_first": {"spec_first": True}, "tuple_first": {"spec_first": False}},
    deviations=[EQUAL_TO_A_TUPLE],
)
def against_a_tuple(env, spec_first):
    """`P("x") == ("x",)` is silently False from 0.10.0, so old code no longer takes that branch.

    Compare `tuple(spec)`, or make the tuple a PartitionSpec.
    """
    spec, entries = P("x", None), ("x", None)
    equal = spec == entries if spec_first else entries == spec
    return Observed(
        {"as_is": equal, "converted": tuple(spec) == entries}, {"as_is": False, "converted": True}
    )


HASHED_AS_A_TUPLE = deviation(
    "jax<0.6.1",
    outcome="ok",
    reason="a PartitionSpec hashed as the tuple of its entries",
    issue="jax-ml/jax@17b02ecb1b0e",
)


@probe(source="jax-ml/jax@17b02ecb1b0e", deviations=[HASHED_AS_A_TUPLE])
def as_a_key_beside_tuples(env):
    """A table keyed by tuples does not find a PartitionSpec from 0.6.1.

    A table keyed by specs does.
    """
    by_tuple, by_spec = {("x",): "rows"}, {P("x"): "rows"}
    return Observed(
        {"by_tuple": by_tuple.get(P("x"), "missing"), "by_spec": by_spec.get(P("x"), "missing")},
        {"by_tuple": "missing", "by_spec": "rows"},
    )


ENTRIES_NOT_CANONICAL = deviation(
    "jax<0.5.3",
    outcome="ok",
    reason="entries were kept as they were written",
    issue="jax-ml/jax@177e1f6ed99d",
)


@probe(source="jax-ml/jax@177e1f6ed99d", deviations=[ENTRIES_NOT_CANONICAL])
def canonical_entries(env):
    """From 0.5.3 `("x",)` becomes `"x"` and `()` becomes None, so these specs are equal.

    A trailing None counts, as before: `P("x")` and `P("x", None)` are not equal, although they mean
    the same for a matrix (`is_equivalent_to` of their shardings is True).
    """
    return Observed(
        {
            "one_axis": P(("x",)) == P("x"),
            "no_axis": P("x", ()) == P("x", None),
            "list": P(["x", "y"]) == P(("x", "y")),
            "trailing": P("x") == P("x", None),
        },
        {"one_axis": True, "no_axis": True, "list": True, "trailing": False},
    )


PRINTED_BY_FULL_NAME = deviation(
    "jax<0.9.1",
    outcome="ok",
    reason="a PartitionSpec was printed by its full name",
    issue="jax-ml/jax@184745828a4e",
)


@probe(source="jax-ml/jax@184745828a4e", deviations=[PRINTED_BY_FULL_NAME])
def printed(env):
    """`repr` is `P('x', None)` from 0.9.1, and `PartitionSpec('x', None)` before."""
    return Observed(
        [repr(P("x", None)), str(P(("x", "y"))), repr(P()), repr(P(P.UNCONSTRAINED))],
        ["P('x', None)", "P(('x', 'y'),)", "P()", "P(UNCONSTRAINED,)"],
    )


SUM_WAS_A_TUPLE = deviation(
    "jax<0.6.1",
    outcome="ok",
    reason="a PartitionSpec was a tuple, and adding tuples makes a tuple",
    issue="jax-ml/jax@17b02ecb1b0e",
)


@probe(
    source="jax-ml/jax@17b02ecb1b0e",
    params={
        "and_tuple": {"left": "spec", "right": "tuple"},
        "tuple_and": {"left": "tuple", "right": "spec"},
        "two_specs": {"left": "spec", "right": "spec"},
    },
    deviations=[SUM_WAS_A_TUPLE],
)
def joined(env, left, right):
    """Adding to a PartitionSpec makes a PartitionSpec from 0.6.1, and made a plain tuple before.

    `P("data") + ("x",)` reached NamedSharding as a tuple, which was an error there.
    """
    kinds = {"spec": P, "tuple": lambda *entries: entries}
    out = kinds[left]("x") + kinds[right]("y", None)
    return Observed(
        {"spec": isinstance(out, P), "entries": [str(entry) for entry in out]},
        {"spec": True, "entries": ["x", "y", "None"]},
    )


NO_ORDER = deviation(
    "jax>=0.6.1",
    error="TypeError",
    match="'<' not supported between instances of '(PartitionSpec|P)'",
    reason="a PartitionSpec has no order; a tuple has",
    issue="jax-ml/jax@17b02ecb1b0e",
)


@probe(source="jax-ml/jax@17b02ecb1b0e", deviations=[NO_ORDER])
def sorted_specs(env):
    """Sorting specs, for a report that must be stable, is a TypeError from 0.6.1."""
    return Observed([entry[0] for entry in sorted([P("y"), P("x")])], ["x", "y"])


@probe(source="jax-ml/jax@17b02ecb1b0e")
def is_a_leaf(env):
    """A spec is one leaf of a pytree, tuple or not, and survives pickling, on every release."""
    tree = {"w": P("x", None), "b": (P(), P("y"))}
    doubled = jax.tree_util.tree_map(len, tree)
    back = pickle.loads(pickle.dumps(tree))  # noqa: S301 - the bytes are made here
    return Observed(
        {"lengths": doubled, "same": back == tree},
        {"lengths": {"w": 2, "b": (0, 1)}, "same": True},
    )


@probe(
    source="jax-ml/jax@ede5074c3e27",
    records="the wording of a refusal is up to JAX",
    devices=4,
    params={
        "unknown_axis": {"spec": ("z",)},
        "twice": {"spec": ("x", "x")},
        "nested": {"spec": "nested"},
        "number": {"spec": (1.5,)},
    },
)
def refused(env, spec):
    """Specs without a meaning are refused, by PartitionSpec or by NamedSharding.

    No reference: the words are the observation. From 0.7.2 a nested tuple is reported as such when
    the spec is made; before, NamedSharding reported an axis that the mesh lacks.
    """
    mesh = env.mesh((2, 2), ("x", "y"))
    entries = [("x", ("y",))] if spec == "nested" else spec
    return describe_outcome(lambda: NamedSharding(mesh, P(*entries)) and "accepted")


UNREDUCED_WAS_A_TUPLE = deviation(
    "jax>=0.6.1,<0.6.2",
    outcome="ok",
    reason="unreduced was a tuple, so its order counted",
    issue="jax-ml/jax@b3db37426a96",
)


@probe(source="jax-ml/jax@48140bcbe735", releases="jax>=0.6.1", deviations=[UNREDUCED_WAS_A_TUPLE])
def unreduced_axes(env):
    """`P(unreduced=...)` names axes whose parts are still to be summed; it is a set from 0.6.2."""
    axes = ("x", "y")
    # A release that refuses a set expects a tuple.
    kind = frozenset if describe_outcome(lambda: P(unreduced={"x"})).startswith("P") else tuple
    spec = P("z", unreduced=kind(axes))
    return Observed(
        {"kind": type(spec.unreduced).__name__, "same": spec == P("z", unreduced=kind(axes[::-1]))},
        {"kind": "frozenset", "same": True},
    )


UNPACKING_LOSES_UNREDUCED = deviation(
    "jax>=0.10.2",
    error="ValueError|TypeError",
    match="unreduced",
    reason="unpacking loses the unreduced axes",
    issue="jax-ml/jax@d6c717d9f84b",
)


@probe(
    source="jax-ml/jax@d6c717d9f84b", releases="jax>=0.6.2", deviations=[UNPACKING_LOSES_UNREDUCED]
)
def unpacked_with_unreduced(env):
    """`[*spec]` of a spec with unreduced axes lost them silently; from 0.10.2 it is refused."""
    return Observed([*P("x", unreduced={"y"})], ["x"])


CLASS_IS_FINAL = deviation(
    "jax>=0.9.1",
    error="TypeError",
    match="prohibits subclassing|Subclassing `jax.P` is prohibited",
    reason="PartitionSpec is a final class",
    issue="jax-ml/jax@438ed6d61a5a",
)


@probe(source="jax-ml/jax@438ed6d61a5a", deviations=[CLASS_IS_FINAL])
def subclassed(env):
    """A subclass that names a layout is refused from 0.9.1; use a function that returns a spec."""

    class Rows(P):
        pass

    return Observed(issubclass(Rows, P), True)


@probe(source="jax-ml/jax@0e852e2868cb", releases="jax>=0.7")
def short_name(env):
    """`jax.P` is PartitionSpec itself, from 0.7.0."""
    return Observed(jax.P is P, True)


WRITTEN_AS_A_LIST = deviation(
    "jax<0.6.1",
    outcome="ok",
    reason="a spec was written as the list of its entries, as every tuple is",
    issue="jax-ml/jax@17b02ecb1b0e",
)


@probe(source="jax-ml/jax@17b02ecb1b0e", deviations=[WRITTEN_AS_A_LIST])
def spec_as_json(env):
    """`json.dumps(P("x", None))` is a TypeError from 0.6.1 on; before, it was `["x", null]`."""
    outcome = refusal(lambda: json.dumps(P("x", None)), "not JSON serializable")
    return Observed(outcome, reference="TypeError: not JSON serializable")


TEXTS_EXPECTED = deviation(
    "jax>=0.7",
    error="TypeError",
    match="incompatible function arguments",
    reason="Shardy, the default partitioner, names axes by texts",
    issue="jax-ml/jax@864178d3a344",
)


@probe(source="jax-ml/jax@864178d3a344", devices=4, deviations=[TEXTS_EXPECTED])
def program_with_a_numbered_axis(env):
    """A jitted function of an array on a mesh whose axis is named 1: a TypeError from 0.7.0 on."""
    mesh = Mesh(np.array(env.devices[:4]), (1,))
    x = np.arange(8, dtype=np.float32)
    doubled = jax.jit(lambda x: 2 * x)(jax.device_put(x, NamedSharding(mesh, P(1))))
    return Observed(doubled, reference=2 * x)
