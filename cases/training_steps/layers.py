"""Convolutions, normalisations, activations, losses and embeddings, with the gradients of each."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe

from . import _tape as tape
from ._helpers import convolve, draw, pull

defaults(platforms=("cpu",))

WIDTH, CHANNELS, FEATURES, TAPS = 7, 4, 4, 3

CONVOLUTIONS = {
    "upsampled": {"upsample": 2, "pad": (1, 1)},
    "grouped": {"groups": 2},
    "depthwise": {"groups": 4, "stride": 2, "pad": (1, 1)},
    "strided_and_dilated": {"stride": 3, "dilate": 2, "pad": (2, 1)},
}


def _xla(stride=1, pad=(0, 0), dilate=1, upsample=1, groups=1):
    """Return the convolution of NWC inputs and WIO kernels that XLA computes."""
    return lambda x, kernel: lax.conv_general_dilated(
        x,
        kernel,
        window_strides=(stride,),
        padding=(pad,),
        rhs_dilation=(dilate,),
        lhs_dilation=(upsample,),
        feature_group_count=groups,
        dimension_numbers=("NWC", "WIO", "NWC"),
    )


def _data(env, name, *batch):
    """Return inputs and a kernel for a convolution."""
    groups = CONVOLUTIONS[name].get("groups", 1)
    kernel = draw(env, TAPS, CHANNELS // groups, FEATURES, seed=1)
    return draw(env, *batch, 2, WIDTH, CHANNELS), kernel


def _compare(fn, exact, *args):
    """Return the value of a function and its gradients for a cotangent, and the exact ones."""
    size = tape.vjp(exact, *args)[0].shape
    cotangent = np.linspace(-1, 1, max(1, np.prod(size, dtype=int))).reshape(size) + 0.125
    expected, slopes = tape.vjp(exact, *args, cotangent=cotangent)
    out, grads = pull(fn, *args, cotangent=cotangent.astype(np.float32))
    return Observed((out, *grads), (expected, *slopes))


@probe(source="jax-ml/jax#13800", params=[*CONVOLUTIONS])
def convolution(env, name):
    """A convolution and the gradients of both operands are right."""
    x, kernel = _data(env, name)
    options = CONVOLUTIONS[name]
    return _compare(_xla(**options), lambda x, k: convolve(x, k, **options), x, kernel)


@probe(source="jax-ml/jax#3289", params=["upsampled", "grouped"])
def per_sample_gradients(env, name):
    """`vmap` of the gradient of a squared convolution gives a kernel gradient for each sample."""
    x, kernel = _data(env, name, 3)
    options = CONVOLUTIONS[name]
    loss = lambda kernel, x: (_xla(**options)(x, kernel) ** 2).sum()  # noqa: E731 - short
    exact = lambda k, x: (convolve(x, k, **options) ** 2).sum()  # noqa: E731 - short
    grads = jax.jit(jax.vmap(jax.grad(loss), (None, 0)))(kernel, x)
    return Observed(grads, np.stack([tape.vjp(exact, kernel, sample)[1][0] for sample in x]))


@probe(source="jax-ml/jax#858")
def mapped_kernels(env):
    """`vmap` over inputs and kernels of the gradient with respect to the input."""
    x, kernel = _data(env, "grouped", 3)
    kernels = np.stack([kernel, 2 * kernel, kernel[::-1]])
    options = CONVOLUTIONS["grouped"]
    loss = lambda x, kernel: (_xla(**options)(x, kernel) ** 2).sum()  # noqa: E731 - short
    exact = lambda x, k: (convolve(x, k, **options) ** 2).sum()  # noqa: E731 - short
    grads = jax.jit(jax.vmap(jax.grad(loss)))(x, kernels)
    pairs = zip(x, kernels, strict=True)
    return Observed(grads, np.stack([tape.vjp(exact, *pair)[1][0] for pair in pairs]))


COTANGENT_IS_WIDE = deviation(
    "jax<0.10",
    error="TypeError",
    match="requires arguments to have the same dtypes",
    reason="the transpose met a float32 cotangent with a bfloat16 operand",
    issue="jax-ml/jax#31592",
)


@probe(source="jax-ml/jax#31592", deviations=[COTANGENT_IS_WIDE])
def grad_with_preferred_element_type(env):
    """A bfloat16 convolution with a float32 result has gradients, in bfloat16."""
    x, kernel = (a.astype(jnp.bfloat16) for a in _data(env, "upsampled"))

    def loss(x, kernel):
        out = lax.conv_general_dilated(
            x,
            kernel,
            (1,),
            "VALID",
            dimension_numbers=("NWC", "WIO", "NWC"),
            preferred_element_type=np.float32,
        )
        return out.sum()

    grads = jax.jit(jax.grad(loss, (0, 1)))(x, kernel)
    exact = tape.vjp(lambda x, k: convolve(x, k).sum(), *(a.astype(float) for a in (x, kernel)))
    return Observed(grads, exact[1])


NO_SHARDING_RULE = deviation(
    "jax==0.7.2",
    error="NotImplementedError",
    reason="the sharding rule of a convolution did not cover groups of the batch",
    issue="jax-ml/jax#32157",
)


@probe(source="jax-ml/jax#32157", devices=4, deviations=[NO_SHARDING_RULE])
def per_sample_gradients_on_a_mesh(env):
    """Per-sample gradients of a convolution are right for arrays on a mesh."""
    x, kernel = _data(env, "grouped", 4)
    mesh, options = env.mesh(4, "x"), CONVOLUTIONS["grouped"]
    place = lambda a, *spec: jax.device_put(a, NamedSharding(mesh, P(*spec)))  # noqa: E731 - short
    loss = lambda kernel, x: (_xla(**options)(x, kernel) ** 2).sum()  # noqa: E731 - short
    exact = lambda k, x: (convolve(x, k, **options) ** 2).sum()  # noqa: E731 - short
    grads = jax.jit(jax.vmap(jax.grad(loss), (None, 0)))(place(kernel), place(x, "x"))
    return Observed(grads, np.stack([tape.vjp(exact, kernel, sample)[1][0] for sample in x]))


def _layer_norm(x, gain):
    """Return a layer norm with a gain."""
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / ((centred**2).mean(axis=-1, keepdims=True) + 1e-5) ** 0.5 * gain


NORMS = {
    "layer": _layer_norm,
    "rms": lambda x, gain: x / ((x**2).mean(axis=-1, keepdims=True) + 1e-5) ** 0.5 * gain,
}


@probe(source="jax-ml/jax#3289", params=[*NORMS])
def normalization(env, name):
    """A normalisation and its gradients are right in float32."""
    return _compare(NORMS[name], NORMS[name], draw(env, 4, 8), draw(env, 8, seed=1))


NEGATIVE_VARIANCE = deviation(
    "jax<0.8.2",
    outcome="ok",
    reason="the variance of equal numbers was negative, and its root NaN",
    issue="jax-ml/jax@c13c96b65634",
)


@probe(source="jax-ml/jax@c13c96b65634", deviations=[NEGATIVE_VARIANCE])
def standardized_constant(env):
    """`nn.standardize` of equal numbers is finite: their variance is not negative."""
    x = np.full((3, 7), 0.1, np.float32) * np.array([[1], [1e3], [3e4]], np.float32)
    out = jax.jit(jax.nn.standardize)(x)
    return Observed(np.isfinite(out).all(axis=1), np.ones(3, bool))


SQUARES_OVERFLOW = deviation(
    outcome="ok",
    reason="the mean of squares is computed in float16, whose largest number is 65504",
)


@probe(source="jax-ml/jax#30426", rtol=1e-2, deviations=[SQUARES_OVERFLOW])
def standardized_in_float16(env):
    """`nn.standardize` of 300 and -300 in float16 is silently 0; it is 1 and -1.

    `jnp.var` of the same array is computed in float32, and `jnp.std` is 300.
    """
    x = np.array([[300, -300], [100, -100]], np.float16)
    return Observed(jax.jit(jax.nn.standardize)(x), np.array([[1.0, -1], [1, -1]]))


ACTIVATIONS = {
    "gelu": lambda n, x: x * (n.tanh((x + 0.044715 * x**3) * (2 / np.pi) ** 0.5) + 1) * 0.5,
    "silu": lambda n, x: x / (n.exp(-x) + 1),
    "softmax": lambda n, x: n.softmax(x),
    "log_softmax": lambda n, x: n.log_softmax(x),
}


@probe(source="jax-ml/jax#20856", params=[*ACTIVATIONS])
def activation(env, name):
    """An activation of `jax.nn` and its gradient are right, and have the same value under jit."""
    x = draw(env, 3, 8, scale=3.0) + np.float32(1 / 128)  # no zeros, where relu has a kink
    exact = lambda x: ACTIVATIONS[name](tape, x)  # noqa: E731 - short
    return _compare(getattr(jax.nn, name), exact, x)


LABELS = np.array([2, 0, 7, 2])


@probe(source="jax-ml/jax#20856")
def cross_entropy(env):
    """The cross entropy of integer labels and its gradient are right."""
    fn = lambda x: -jnp.take_along_axis(jax.nn.log_softmax(x), LABELS[:, None], 1).mean()  # noqa: E731 - short
    exact = lambda x: -tape.log_softmax(x)[np.arange(4), LABELS].mean()  # noqa: E731 - short
    return _compare(fn, exact, draw(env, 4, 8, scale=3.0))


LOOKUPS = {
    "index": lambda table, ids: table[ids],
    "one_hot": lambda table, ids: jax.nn.one_hot(ids, len(table)) @ table,
}


@probe(source="openxla/xla#42481", devices=4, params=[*LOOKUPS])
def embedding_gradient(env, name):
    """The gradient of a lookup sums over repeated ids: table replicated, or sharded on each axis.

    The batch is sharded as well, so that each device has contributions for each row.
    """
    table, ids = draw(env, 8, 4), np.array([[1, 5], [5, 5], [0, 7], [1, 2]])
    weigh = draw(env, 4, 2, 4, seed=1)
    mesh = env.mesh((2, 2), ("x", "y"))
    place = lambda a, *spec: jax.device_put(a, NamedSharding(mesh, P(*spec)))  # noqa: E731 - short
    grad = jax.jit(jax.grad(lambda t, ids, w: (LOOKUPS[name](t, ids) * w).sum()))
    batch = place(ids, "x"), place(weigh, "x")
    specs = {"replicated": (), "rows": ("x",), "columns": (None, "y"), "both": ("y", "x")}
    exact = tape.vjp(lambda t: (t[ids] * weigh).sum(), table)[1][0]
    observed = {key: grad(place(table, *spec), *batch) for key, spec in specs.items()}
    return Observed(observed, dict.fromkeys(specs, exact))


@probe(source="jax-ml/jax#25878")
def ids_out_of_range(env):
    """An id beyond the table gives NaN with `take`, the last row with an index, no error.

    The gradient of neither reaches the table.
    """
    table, ids = np.arange(1, 4, dtype=np.float32), np.array([0, 7])
    observed = {
        key: pull(lambda t: look(t, ids), table, cotangent=np.ones(2, np.float32))
        for key, look in (("take", jnp.take), ("index", lambda t, i: t[i]))
    }
    gradient = (np.array([1.0, 0, 0]),)
    return Observed(
        observed,
        {"take": (np.array([1, np.nan]), gradient), "index": (np.array([1.0, 3.0]), gradient)},
    )


ONLY_ON_GPU = deviation(
    "jax<0.11",
    error="NotImplementedError",
    match="not found for platform cpu",
    reason="the primitive had a lowering for GPUs only",
    issue="jax-ml/jax#38813",
)


@probe(source="jax-ml/jax#38813", releases="jax>=0.5.3", deviations=[ONLY_ON_GPU])
def scaled_matmul(env):
    """`jax.nn.scaled_matmul` runs on a CPU from 0.11.0 on."""
    a = jnp.asarray(np.repeat(np.float32([[[1], [2]]]), 32, axis=2), jnp.float8_e4m3fn)
    scale = jnp.asarray(np.float32([[[1], [4]]]), jnp.float8_e8m0fnu)
    out = jax.nn.scaled_matmul(a, a, scale, scale)
    return Observed(out, np.float32([[[32, 256], [256, 2048]]]))
