"""Training in 16 and 8 bits: accumulation, loss scaling, master weights, conversions to fp8."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe

defaults(platforms=("cpu",))

SIZE = 1024
BF16 = jnp.bfloat16

# Sums of 1024 ones: a bfloat16 accumulator stops at 256, because 257 is rounded to 256.
SUMS = {
    "dot": lambda x: x @ x,
    "sum": jnp.sum,
    "cumsum": lambda x: jnp.cumsum(x)[-1],
    "convolution": lambda x: jnp.convolve(x, x, mode="valid")[0],
    "gradient_of_broadcast": lambda x: jax.grad(lambda b: (b * x).sum())(BF16(1)),
}


@probe(source="jax-ml/ml_dtypes#63", params=[*SUMS])
def bfloat16_sum(env, name):
    """A sum of 1024 ones in bfloat16 is 1024: it is accumulated in float32."""
    return Observed(jax.jit(SUMS[name])(np.ones(SIZE, BF16)), np.float64(SIZE))


@probe(source="jax-ml/ml_dtypes#63", devices=4)
def sharded_bfloat16_dot(env):
    """A product sharded over its terms in bfloat16 keeps the small terms of each device."""
    x = jax.device_put(np.ones(SIZE, BF16), NamedSharding(env.mesh(4, "x"), P("x")))
    return Observed(jax.jit(SUMS["dot"])(x), np.float64(SIZE))


def _grad_of_lookup(x):
    """Return the gradient of a table of one number that is looked up 1024 times."""
    return jax.grad(lambda table: (table[np.zeros(SIZE, int)] * x).sum())(x[:1])


SCATTERS = {
    "segment_sum": lambda x: jax.ops.segment_sum(x, np.zeros(SIZE, int), 1)[0],
    "gradient_of_lookup": lambda x: _grad_of_lookup(x)[0],
}


SHARDS_IN_ONE_SUM = deviation(
    "jax<0.4.36",
    outcome="ok",
    match="four_devices",
    reason="the scatter was not partitioned over its updates",
    issue="jax-ml/jax#18440",
)


@probe(
    source="jax-ml/jax#18440",
    devices=4,
    params=[*SCATTERS],
    deviations=[SHARDS_IN_ONE_SUM],
)
def bfloat16_scatter(env, name):
    """A scatter of 1024 ones in bfloat16 stops at 256, and four shards of it at 1024.

    So the gradient of an embedding in bfloat16 loses tokens that are frequent.
    """
    place = NamedSharding(env.mesh(4, "x"), P("x"))
    x = np.ones(SIZE, BF16)
    fn = jax.jit(SCATTERS[name])
    observed = {"one_device": fn(x), "four_devices": fn(jax.device_put(x, place))}
    return Observed(observed, {"one_device": np.float64(256), "four_devices": np.float64(SIZE)})


MIXED = {
    "fp8_bfloat16": (ml_dtypes.float8_e4m3fn, BF16),
    "fp8_fp8": (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2),
}


@probe(source="jax-ml/jax#21211", params=[*MIXED])
def mixed_product(env, name):
    """A product of two dtypes in float32 has gradients in the dtypes of the operands."""
    left, right = MIXED[name]
    x, w = np.arange(8).reshape(2, 4), np.arange(-6, 6).reshape(4, 3) / 2
    dot = lambda x, w: lax.dot(x, w, preferred_element_type=np.float32)  # noqa: E731 - short
    fn = jax.jit(lambda x, w: (dot(x, w), jax.grad(lambda *a: dot(*a).sum(), (0, 1))(x, w)))
    out, grads = fn(x.astype(left), w.astype(right))
    exact = np.tile(w.sum(1), (2, 1)), np.tile(x.sum(0)[:, None], 3).astype(float)
    return Observed((out, grads), ((x @ w).astype(float), exact))


@probe(
    source="google-deepmind/jmp#47",
    params={"scaled": {"scale": 32768.0}, "unscaled": {"scale": 1.0}},
)
def loss_scale(env, scale):
    """A gradient below the range of float16 is zero, or right if the loss was scaled up."""
    small, tiny = np.float16(2.0**-13), np.float16(2.0**-15)
    loss = lambda w, a, b: w * a * b * np.float16(scale)  # noqa: E731 - short
    grad = jax.jit(jax.grad(loss))(np.float16(1), small, tiny)
    return Observed(grad.astype(np.float32) / np.float32(scale), 2.0**-28 if scale > 1 else 0.0)


@probe(source="google-deepmind/jmp#47")
def dynamic_loss_scale(env):
    """A step whose scaled gradient overflows is skipped and halves the scale; others double it."""
    slopes = np.array([1, 2, 8, 64, 1, 1], np.float16)

    def step(carry, slope):
        w, scale = carry
        grad = jax.grad(lambda w: w * slope * scale.astype(np.float16))(w.astype(np.float16))
        finite = jnp.isfinite(grad)
        w = jnp.where(finite, w - 0.25 * grad.astype(np.float32) / scale, w)
        return (w, jnp.where(finite, scale * 2, scale / 2)), finite

    carry = np.float32(1.0), np.float32(2048.0)
    observed = jax.jit(lambda: lax.scan(step, carry, slopes))()
    w, scale, kept = 1.0, 2048.0, []
    for slope in slopes.astype(float):
        kept.append(slope * scale < 65520)
        w, scale = (w - 0.25 * slope, scale * 2) if kept[-1] else (w, scale / 2)
    return Observed(observed, ((np.float64(w), np.float64(scale)), np.array(kept)))


@probe(source="google-deepmind/jmp#47", params=["bfloat16", "float32"])
def master_weights(env, name):
    """256 small steps move a float32 weight, but not one in bfloat16, which rounds each away."""
    master = {"bfloat16": BF16, "float32": np.float32}[name]
    gradient = lambda w: w.astype(BF16)  # noqa: E731 - short
    step = lambda w, _: (w - (gradient(w) * BF16(2.0**-10)).astype(master), None)  # noqa: E731
    out = jax.jit(lambda w: lax.scan(step, w, None, length=256)[0])(np.array(1, master))
    w = np.float32(1)
    for _ in range(256):
        w = (
            (w - np.float32(w.astype(BF16)) * np.float32(2.0**-10))
            .astype(master)
            .astype(np.float32)
        )
    return Observed(out, np.float64(w))


FP8 = {
    "e4m3fn": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
}
TABLE = np.array(
    [
        0.0,
        -0.0,
        1,
        1.0625,
        1.1875,
        17,
        19,
        239,
        240,
        248,
        447,
        448,
        464,
        465,
        480,
        57344,
        61440,
        1e6,
    ]
    + [2.0**-k for k in range(6, 20)]
    + [1.5 * 2.0**-k for k in range(6, 20)]
    + [np.inf, -np.inf, np.nan, -1.0, -500.0]
)


@probe(source="jax-ml/ml_dtypes#400", params=[*FP8])
def convert_to_fp8(env, name):
    """Conversion to fp8 rounds to even and overflows as `ml_dtypes` does, from three dtypes."""
    sources = {"float32": np.float32, "bfloat16": BF16, "float16": np.float16}
    with np.errstate(over="ignore"):
        tables = {key: TABLE.astype(dtype) for key, dtype in sources.items()}
    fn = jax.jit(lambda x: x.astype(FP8[name]))
    observed = {key: np.asarray(fn(x)).astype(np.float32) for key, x in tables.items()}
    exact = {key: x.astype(FP8[name]).astype(np.float32) for key, x in tables.items()}
    return Observed(observed, exact)


@probe(source="jax-ml/jax#28416", params=["e4m3fn", "e5m2"])
def convert_from_fp8(env, name):
    """All 256 patterns of an fp8 dtype are converted to float32 and bfloat16 as by `ml_dtypes`."""
    every = np.arange(256, dtype=np.uint8).view(FP8[name])
    fn = jax.jit(lambda x: (x.astype(np.float32), x.astype(BF16).astype(np.float32)))
    return Observed(fn(every), (every.astype(np.float32),) * 2)


REDUCTIONS = {
    "max": lambda n, x: n.max(x),
    "min": lambda n, x: n.min(x),
    "argmax": lambda n, x: n.argmax(x),
    "sort": lambda n, x: n.sort(x),
    "abs_max": lambda n, x: n.max(n.abs(x)),
    "product": lambda n, x: n.multiply(x, x),
    "less": lambda n, x: n.less(x, 1),
}


@probe(source="jax-ml/jax#19011", params=["e4m3fn", "e5m2"])
def fp8_operations(env, name):
    """Extrema, a product, a comparison and a sort in fp8 are right."""
    x = np.array([-3.5, 1.25, 6, 0.5, -0.25], FP8[name])
    fn = jax.jit(lambda x: {key: fn(jnp, x) for key, fn in REDUCTIONS.items()})
    observed = {key: np.asarray(value).astype(np.float32) for key, value in fn(x).items()}
    wide = {key: fn(np, x.astype(np.float32)) for key, fn in REDUCTIONS.items()}
    wide["product"] = wide["product"].astype(FP8[name])
    return Observed(observed, {key: np.asarray(v).astype(np.float32) for key, v in wide.items()})


ACCUMULATED_IN_FP8 = deviation(
    "jax>=0.4.33",
    outcome="ok",
    match="reference 64.0",
    reason="each partial sum is rounded to fp8, since XLA keeps conversions",
    issue="jax-ml/jax#23007",
)


@probe(
    source="jax-ml/ml_dtypes#63",
    params=["e4m3fn", "e5m2"],
    deviations=[ACCUMULATED_IN_FP8],
)
def fp8_sum(env, name):
    """A sum of 64 ones in fp8 is 64: it is accumulated in a wider type."""
    return Observed(jax.jit(jnp.sum)(np.ones(64, FP8[name])).astype(np.float32), np.float64(64))


CONVERSIONS_REMOVED = deviation(
    "jax<0.4.33",
    outcome="ok",
    reason="XLA removed the conversion to fp8 and back",
    issue="jax-ml/jax#23007",
)


@probe(source="jax-ml/jax#21211", deviations=[CONVERSIONS_REMOVED])
def scaled_fp8_layer(env):
    """A layer in fp8 scaled to its largest element, with gradients in e5m2, as trained in fp8."""
    e4m3, e5m2 = FP8["e4m3fn"], FP8["e5m2"]

    def quantize(n, x, dtype, limit):
        scale = limit / n.abs(x).max()
        return (x * scale).astype(dtype).astype(np.float32), scale

    def forward(n, x, w):
        (qx, sx), (qw, sw) = quantize(n, x, e4m3, 448), quantize(n, w, e4m3, 448)
        return qx @ qw / (sx * sw)

    def backward(n, x, w, g):
        (qx, sx), (qw, sw) = quantize(n, x, e4m3, 448), quantize(n, w, e4m3, 448)
        qg, sg = quantize(n, g, e5m2, 57344)
        return qg @ qw.T / (sg * sw), qx.T @ qg / (sx * sg)

    layer = jax.custom_vjp(lambda x, w: forward(jnp, x, w))
    layer.defvjp(lambda x, w: (layer(x, w), (x, w)), lambda r, g: backward(jnp, *r, g))
    x, w = (
        env.rng(s).integers(-8, 8, size).astype(np.float32)
        for s, size in ((1, (4, 8)), (2, (8, 4)))
    )
    g = env.rng(3).integers(-8, 8, (4, 4)).astype(np.float32)
    out, pull = jax.jit(lambda x, w, g: (layer(x, w), jax.vjp(layer, x, w)[1](g)))(x, w, g)
    return Observed((out, pull), (forward(np, x, w), backward(np, x, w, g)))
