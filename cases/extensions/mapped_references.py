"""References in lanes: `jax.vmap` over a reference and over the index that reads it."""

from __future__ import annotations

import jax
import numpy as np

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import new_reference

defaults(platforms=("cpu",), releases="jax>=0.6")

READS = {"row": lambda ref, i: ref[i], "column": lambda ref, i: ref[:, i]}
EACH_LANE_READ_ALL = deviation(
    "jax>=0.8,<0.8.2",
    outcome="ok",
    reason="each lane read the references of all lanes at its index",
    issue="jax-ml/jax#33309",
)
INDEX_REFUSED = deviation(
    "jax>=0.8.2,<0.10.1",
    error="ValueError",
    match="Indexer must have rank 1",
    reason="the rule of vmap built an index of another rank",
)


@probe(
    source="jax-ml/jax#33309",
    params=[*READS],
    deviations=[EACH_LANE_READ_ALL, INDEX_REFUSED],
)
def read_at_a_mapped_index(env, name):
    """Under `vmap`, `ref[i]` with an index for each lane reads the reference of this lane.

    In 0.8.0 and 0.8.1 each lane silently got the rows of all lanes, an axis more than it should.
    """
    x, indices = np.arange(12, dtype=np.float32).reshape(2, 3, 2), np.array([0, 1])
    read = jax.jit(jax.vmap(lambda x, i: READS[name](new_reference(x), i)))
    exact = np.stack([READS[name](lane, i) for lane, i in zip(x, indices, strict=True)])
    return Observed(read(x, indices), reference=exact)


def whole(ref, x):
    """Replace all elements."""
    ref[...] = x


def element(ref, x):
    """Replace the first element."""
    ref[0] = x[0]


def loop(ref, x):
    """Replace the elements one by one in a loop that closes over the reference."""
    jax.lax.fori_loop(0, 3, lambda i, _: element_at(ref, x, i), None)


def element_at(ref, x, i):
    """Replace one element."""
    ref[i] = x[i]


def scan(ref, x):
    """Double the elements one by one in a scan over the reference itself."""
    jax.lax.scan(lambda _, element: (None, double(element)), None, ref)


def double(ref):
    """Double a number."""
    ref[...] = 2 * ref[...]


def replaced(lane, x):
    """Return a lane after `whole` or `loop`."""
    return x


def first_replaced(lane, x):
    """Return a lane after `element`."""
    return np.append(x[:1], lane[1:])


def doubled(lane, x):
    """Return a lane after `scan`."""
    return 2 * lane


WRITES = {
    "whole_of_rows": (whole, replaced, 0),
    "whole_of_columns": (whole, replaced, 1),
    "element_of_rows": (element, first_replaced, 0),
    "element_of_columns": (element, first_replaced, 1),
    "loop_over_rows": (loop, replaced, 0),
    "loop_over_columns": (loop, replaced, 1),
    "scan_of_rows": (scan, doubled, 0),
    "scan_of_columns": (scan, doubled, 1),
}


VALUE_NOT_MOVED = deviation(
    "jax>=0.8,<0.11.1",
    params=["whole_of_columns"],
    outcome="ok",
    reason="the lanes of the value kept their axis, which was not that of the reference",
    issue="jax-ml/jax#39288",
)
INDEX_WITHOUT_LANES = [
    deviation(
        "jax>=0.8,<0.10.1",
        params=["element_of_rows", "loop_over_rows", "loop_over_columns"],
        error="ValueError",
        match="axis 1 is out of bounds for array of dimension 1",
        reason="the batching rule moved an axis that the value does not have",
        issue="jax-ml/jax#37113",
    ),
    deviation(
        "jax>=0.8,<0.8.2",
        params=["element_of_columns"],
        error="ValueError",
        match="Invalid shape for `swap`",
        reason="the batching rule wrote to another axis",
        issue="jax-ml/jax#37113",
    ),
]
REFERENCE_NOT_TRANSPOSED = [
    deviation(
        "jax<0.8",
        params=["loop_over_columns"],
        error="AttributeError",
        match="no attribute 'ndim'",
        reason="a loop had to have its lanes along the first axis, and a reference is no array",
        issue="jax-ml/jax#39288",
    ),
    deviation(
        "jax>=0.10.1,<0.12",
        params=["loop_over_columns"],
        error="AttributeError",
        match="'Ref' object has no attribute 'transpose'",
        reason="a loop had to have its lanes along the first axis, and a reference is no array",
        issue="jax-ml/jax#39288",
    ),
    deviation(
        "jax<0.12",
        params=["scan_of_rows"],
        error="AttributeError",
        match="no attribute '(ndim|transpose)'",
        reason="a scan had to have its lanes along the second axis, and a reference is no array",
        issue="jax-ml/jax#39288",
    ),
    deviation(
        "jax>=0.12",
        params=["scan_of_rows"],
        error="NotImplementedError",
        match="vmap of a scan over a Ref batched along its leading axis",
        reason="lanes along the axis that is scanned are refused",
        issue="jax-ml/jax#39745",
    ),
]


@probe(
    source="jax-ml/jax#39288",
    params=[*WRITES],
    deviations=[VALUE_NOT_MOVED, *INDEX_WITHOUT_LANES, *REFERENCE_NOT_TRANSPOSED],
)
def written_lanes(env, name):
    """Under `vmap`, each lane writes to its row, or with `in_axes` of 1 to its column.

    From 0.8.0 to 0.11.0, `ref[...] = x` of a square silently wrote columns as rows.
    """
    write, exact, axis = WRITES[name]
    square = np.arange(9, dtype=np.float32).reshape(3, 3)
    ref, x = new_reference(square), 100 + square
    jax.vmap(write, in_axes=(axis, 0))(ref, x)
    lanes = [exact(lane, row) for lane, row in zip(np.moveaxis(square, axis, 0), x, strict=True)]
    return Observed(np.asarray(ref[...]), reference=np.stack(lanes, axis))
