"""Layers under jit with sharded operands: the partitioner splits them, and no number may change.

Each case compares a value and its gradients for several shardings with NumPy float64. Splits over
the axis of a convolution, the keys of attention, the vocabulary of a loss or the tokens of a
router make the partitioner exchange or mask elements.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, probe

from . import _tape as tape
from ._helpers import attend, convolve, draw, exact_mixture, make_mask, pull

defaults(platforms=("cpu",), devices=2, xla_flags=["--xla_backend_optimization_level=0"])


def _compare(env, fn, exact, args, layouts, *, cotangent=None):
    """Return values and gradients for each layout, and the exact ones.

    Args:
        env: Environment of the case.
        fn: Function of arrays.
        exact: The same function on the tape.
        args: Arguments.
        layouts: Specs of the arguments by name of the layout.
        cotangent: Cotangent of the value; 1 for a scalar.
    """
    mesh = env.mesh(2, "x")
    value, slopes = tape.vjp(exact, *args, cotangent=1.0 if cotangent is None else cotangent)
    ones = np.float32(1) if cotangent is None else cotangent
    observed = {}
    for name, specs in layouts.items():
        pairs = zip(args, specs, strict=True)
        placed = [jax.device_put(a, NamedSharding(mesh, P(*spec))) for a, spec in pairs]
        observed[name] = pull(fn, *placed, cotangent=ones)
    return Observed(observed, dict.fromkeys(layouts, (value, slopes)))


CONVOLUTIONS = {
    "dilated": {"dilate": 2, "pad": (1, 2)},
    "upsampled": {"upsample": 2, "pad": (1, 1)},
    "grouped": {"groups": 2, "stride": 2},
}
CONVOLUTION_LAYOUTS = {
    "width": ((None, "x"), ()),
    "channels": ((None, None, "x"), (None, "x")),
}


@probe(source="jax-ml/jax#32157", params=[*CONVOLUTIONS])
def sharded_convolution(env, name):
    """A convolution with its width or its channels on two devices."""
    options = CONVOLUTIONS[name]
    stride, pad, groups = (
        options.get(k, d) for k, d in (("stride", 1), ("pad", (0, 0)), ("groups", 1))
    )
    x, kernel = draw(env, 2, 8, 4), draw(env, 3, 4 // groups, 4, seed=1)
    fn = lambda x, kernel: lax.conv_general_dilated(  # noqa: E731 - short
        x,
        kernel,
        (stride,),
        (pad,),
        rhs_dilation=(options.get("dilate", 1),),
        lhs_dilation=(options.get("upsample", 1),),
        feature_group_count=groups,
        dimension_numbers=("NWC", "WIO", "NWC"),
    )
    exact = lambda x, kernel: convolve(x, kernel, **options)  # noqa: E731 - short
    size = tape.vjp(exact, x, kernel)[0].shape
    return _compare(
        env, fn, exact, (x, kernel), CONVOLUTION_LAYOUTS, cotangent=draw(env, *size, seed=2)
    )


ATTENTION_LAYOUTS = {
    "heads": ((None, None, "x"),) * 3,
    "keys": ((), (None, "x"), (None, "x")),
    "sequence": ((None, "x"),) * 3,
}


@probe(source="jax-ml/jax#21371", releases="jax>=0.4.31")
def sharded_attention(env):
    """Causal attention with its heads, its keys or its whole sequence on two devices."""
    q, k, v, cotangent = (draw(env, 2, 4, 2, 4, seed=seed) for seed in range(4))
    fn = lambda *a: jax.nn.dot_product_attention(*a, is_causal=True)  # noqa: E731 - short
    exact = lambda *a: attend(*a, mask=make_mask(4, 4, causal=True))  # noqa: E731 - short
    return _compare(env, fn, exact, (q, k, v), ATTENTION_LAYOUTS, cotangent=cotangent)


LABELS = np.array([2, 0, 7, 2])
LOSSES = {
    "integer": lambda x: -jnp.take_along_axis(jax.nn.log_softmax(x), LABELS[:, None], 1).mean(),
    "index": lambda x: -jax.nn.log_softmax(x)[np.arange(4), LABELS].mean(),
}
LOGITS_LAYOUTS = {"vocabulary": ((None, "x"),)}


@probe(source="jax-ml/jax#20856", params=[*LOSSES])
def sharded_cross_entropy(env, name):
    """A cross entropy with its vocabulary on two devices."""
    exact = lambda x: -tape.log_softmax(x)[np.arange(4), LABELS].mean()  # noqa: E731 - short
    return _compare(env, LOSSES[name], exact, (draw(env, 4, 8, scale=3.0),), LOGITS_LAYOUTS)


def _dispatch_by_sort(x, router, w):
    """Return a top-2 mixture; the rows of each expert are made adjacent by a sort."""
    gates, chosen = lax.top_k(jax.nn.softmax(x @ router), 2)
    order = jnp.argsort(chosen.reshape(-1), stable=True)
    out = jnp.tanh(jnp.einsum("mk,mkn->mn", x[order // 2], w[chosen.reshape(-1)[order]]))
    out = out * gates.reshape(-1)[order][:, None]
    return jnp.zeros((x.shape[0], w.shape[2]), x.dtype).at[order // 2].add(out)


def _dispatch_by_mask(x, router, w):
    """Return a top-2 mixture; every expert gets every token, multiplied by one or zero."""
    gates, chosen = lax.top_k(jax.nn.softmax(x @ router), 2)
    weights = jnp.einsum("mj,mje->me", gates, jax.nn.one_hot(chosen, w.shape[0]))
    return jnp.einsum("me,men->mn", weights, jnp.tanh(jnp.einsum("mk,ekn->men", x, w)))


DISPATCHES = {"sort": _dispatch_by_sort, "mask": _dispatch_by_mask}
MIXTURE_LAYOUTS = {
    "experts": ((), (None, "x"), ("x",)),
    "tokens_and_experts": (("x",), (), ("x",)),
}


@probe(source="jax-ml/jax#20940", params=[*DISPATCHES])
def sharded_mixture_of_experts(env, name):
    """A mixture of experts with its experts, and with its tokens and experts, on two devices."""
    shapes = [(8, 4), (4, 4), (4, 4, 6), (8, 6)]
    x, router, w, cotangent = (draw(env, *shape, seed=i) for i, shape in enumerate(shapes))
    args = x, router, w
    return _compare(
        env, DISPATCHES[name], exact_mixture(2), args, MIXTURE_LAYOUTS, cotangent=cotangent
    )
