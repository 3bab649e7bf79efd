"""PartitionSpec as a value: what it is equal to, hashes to, prints as, and may be joined with.

It was a tuple up to 0.6.0, and code treats it as one: compares it with tuples, sorts it, uses it
as a key beside tuples, adds to it. That went one piece at a time: the base class in 0.6.1, equality
with tuples in 0.10.0. What replaces it everywhere is `tuple(spec)` or `P(*spec)`.
"""

from __future__ import annotations

import pickle

import jax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, deviation, probe

from ._helpers import said


@probe(
    source="jax-ml/jax@17b02ecb1b0e",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.6.1",
            outcome="ok",
            reason="PartitionSpec was a subclass of tuple",
            issue="jax-ml/jax@17b02ecb1b0e",
        )
    ],
)
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


@probe(
    source="jax-ml/jax@b52e741ed011",
    platforms=("cpu",),
    params={"spec_first": {"spec_first": True}, "tuple_first": {"spec_first": False}},
    deviations=[
        deviation(
            "jax<0.10",
            outcome="ok",
            reason="it compared equal to a tuple of the same entries",
            issue="jax-ml/jax@b52e741ed011",
        )
    ],
)
def against_a_tuple(env, spec_first):
    """`P("x") == ("x",)` is silently False from 0.10.0: a branch of old code is never taken again.

    Compare `tuple(spec)`, or make the tuple a PartitionSpec.
    """
    spec, entries = P("x", None), ("x", None)
    equal = spec == entries if spec_first else entries == spec
    return Observed(
        {"as_is": equal, "converted": tuple(spec) == entries}, {"as_is": False, "converted": True}
    )


@probe(
    source="jax-ml/jax@17b02ecb1b0e",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.6.1",
            outcome="ok",
            reason="it hashed as the tuple of its entries",
            issue="jax-ml/jax@17b02ecb1b0e",
        )
    ],
)
def as_a_key_beside_tuples(env):
    """A table keyed by tuples does not find a PartitionSpec from 0.6.1; one keyed by specs does."""
    by_tuple, by_spec = {("x",): "rows"}, {P("x"): "rows"}
    return Observed(
        {"by_tuple": by_tuple.get(P("x"), "missing"), "by_spec": by_spec.get(P("x"), "missing")},
        {"by_tuple": "missing", "by_spec": "rows"},
    )


@probe(
    source="jax-ml/jax@177e1f6ed99d",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.5.3",
            outcome="ok",
            reason="entries were kept as they were written",
            issue="jax-ml/jax@177e1f6ed99d",
        )
    ],
)
def canonical_entries(env):
    """From 0.5.3 `("x",)` is written `"x"` and `()` is None, so these specs are equal.

    A trailing None counts as ever: `P("x")` and `P("x", None)` are not equal, though for a
    matrix they mean the same (`is_equivalent_to` of their shardings says so).
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


@probe(
    source="jax-ml/jax@184745828a4e",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.9.1",
            outcome="ok",
            reason="it was printed by its full name",
            issue="jax-ml/jax@184745828a4e",
        )
    ],
)
def printed(env):
    """`repr` says `P('x', None)` from 0.9.1, `PartitionSpec('x', None)` before."""
    return Observed(
        [repr(P("x", None)), str(P(("x", "y"))), repr(P()), repr(P(P.UNCONSTRAINED))],
        ["P('x', None)", "P(('x', 'y'),)", "P()", "P(UNCONSTRAINED,)"],
    )


@probe(
    source="jax-ml/jax@17b02ecb1b0e",
    platforms=("cpu",),
    params={
        "and_tuple": {"left": "spec", "right": "tuple"},
        "tuple_and": {"left": "tuple", "right": "spec"},
        "two_specs": {"left": "spec", "right": "spec"},
    },
    deviations=[
        deviation(
            "jax<0.6.1",
            outcome="ok",
            reason="adding tuples makes a tuple",
            issue="jax-ml/jax@17b02ecb1b0e",
        )
    ],
)
def joined(env, left, right):
    """Adding makes a PartitionSpec from 0.6.1, and made a plain tuple before.

    `P("data") + ("x",)` went into NamedSharding as a tuple, which was an error there.
    """
    kinds = {"spec": P, "tuple": lambda *entries: entries}
    out = kinds[left]("x") + kinds[right]("y", None)
    return Observed(
        {"spec": isinstance(out, P), "entries": [str(entry) for entry in out]},
        {"spec": True, "entries": ["x", "y", "None"]},
    )


@probe(
    source="jax-ml/jax@17b02ecb1b0e",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax>=0.6.1",
            error="TypeError",
            match="'<' not supported between instances of '(PartitionSpec|P)'",
            reason="only tuples have an order",
            issue="jax-ml/jax@17b02ecb1b0e",
        )
    ],
)
def sorted_specs(env):
    """Sorting specs, for a report that is to be stable, is a TypeError from 0.6.1."""
    return Observed([entry[0] for entry in sorted([P("y"), P("x")])], ["x", "y"])


@probe(source="jax-ml/jax@17b02ecb1b0e", platforms=("cpu",))
def is_a_leaf(env):
    """A spec is one leaf of a pytree, tuple or not, and survives pickling, on every release."""
    tree = {"w": P("x", None), "b": (P(), P("y"))}
    doubled = jax.tree_util.tree_map(len, tree)
    back = pickle.loads(pickle.dumps(tree))  # noqa: S301 - made in the line itself
    return Observed(
        {"lengths": doubled, "same": back == tree},
        {"lengths": {"w": 2, "b": (0, 1)}, "same": True},
    )


@probe(
    source="jax-ml/jax@ede5074c3e27",
    records="the words of a refusal are up to jax",
    devices=4,
    platforms=("cpu",),
    params={
        "unknown_axis": {"spec": ("z",)},
        "twice": {"spec": ("x", "x")},
        "nested": {"spec": "nested"},
        "number": {"spec": (1.5,)},
    },
)
def refused(env, spec):
    """Specs that mean nothing, and by whom and how each is refused.

    No reference: the words are the observation. A nested tuple is told as such from 0.7.2, when
    the spec is made, where before NamedSharding said something else of it.
    """
    mesh = env.mesh((2, 2), ("x", "y"))
    entries = [("x", ("y",))] if spec == "nested" else spec
    return said(lambda: NamedSharding(mesh, P(*entries)) and "accepted")


@probe(
    source="jax-ml/jax@48140bcbe735",
    platforms=("cpu",),
    releases="jax>=0.6.1",
    deviations=[
        deviation(
            "jax>=0.6.1,<0.6.2",
            outcome="ok",
            reason="a tuple, so its order counted",
            issue="jax-ml/jax@b3db37426a96",
        ),
    ],
)
def unreduced_axes(env):
    """`P(unreduced=...)`: axes whose parts are still to be summed; a set from 0.6.2."""
    axes = ("x", "y")
    kind = frozenset if said(lambda: P(unreduced={"x"})).startswith("P") else tuple
    spec = P("z", unreduced=kind(axes))
    return Observed(
        {"kind": type(spec.unreduced).__name__, "same": spec == P("z", unreduced=kind(axes[::-1]))},
        {"kind": "frozenset", "same": True},
    )


@probe(
    source="jax-ml/jax@d6c717d9f84b",
    platforms=("cpu",),
    releases="jax>=0.6.2",
    deviations=[
        deviation(
            "jax>=0.10.2",
            error="ValueError|TypeError",
            match="unreduced",
            reason="what is unpacked forgets the unreduced axes",
            issue="jax-ml/jax@d6c717d9f84b",
        ),
    ],
)
def unpacked_with_unreduced(env):
    """`[*spec]` of a spec with unreduced axes lost them silently; from 0.10.2 it is refused."""
    return Observed([*P("x", unreduced={"y"})], ["x"])


@probe(
    source="jax-ml/jax@438ed6d61a5a",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax>=0.9.1",
            error="TypeError",
            match="prohibits subclassing|Subclassing `jax.P` is prohibited",
            reason="the class is final",
            issue="jax-ml/jax@438ed6d61a5a",
        )
    ],
)
def subclassed(env):
    """A subclass that names a layout: refused from 0.9.1; write a function that returns a spec."""

    class Rows(P):
        pass

    return Observed(issubclass(Rows, P), True)


@probe(source="jax-ml/jax@0e852e2868cb", platforms=("cpu",), releases="jax>=0.7")
def short_name(env):
    """`jax.P` is PartitionSpec itself, from 0.7.0."""
    return Observed(jax.P is P, True)
