"""Small JAX programs whose modules are the samples: each shows one family of operations.

`generate.py` compiles this file as `/src/programs.py`, so that the samples name no machine. Every
program takes a `Place` and returns a function with the shapes of its arguments; it runs on every
jax release since 0.4.30, or raises where a release lacks something.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

F32, BF16, S32, S8 = jnp.float32, jnp.bfloat16, jnp.int32, jnp.int8


@dataclass(frozen=True)
class Place:
    """Where programs are compiled for.

    Attributes:
        platform: `cpu`, `tpu` or `cuda`.
        devices: At least four devices, real or of a topology.
    """

    platform: str
    devices: Sequence[Any]

    def mesh(self, *shape: int, names: tuple[str, ...] = ("x", "y")) -> Mesh:
        """Return a mesh of that shape whose axes are all automatic."""
        devices = np.array(self.devices[: int(np.prod(shape))]).reshape(shape)
        names = names[: len(shape)]
        kinds = getattr(jax.sharding, "AxisType", None)
        if kinds is None:
            return Mesh(devices, names)
        return Mesh(devices, names, axis_types=(kinds.Auto,) * len(shape))

    def arg(self, *shape: int, dtype: Any = F32, on: Any = None) -> jax.ShapeDtypeStruct:
        """Return an argument: on the first device, or with a sharding."""
        return jax.ShapeDtypeStruct(shape, dtype, sharding=on or self.alone())

    def alone(self) -> Any:
        """Return the sharding of what is on one device; old CUDA topologies take none below two."""
        if self.platform == "cuda":
            return NamedSharding(self.mesh(2), P())
        return SingleDeviceSharding(self.devices[0])


@dataclass(frozen=True)
class Built:
    """A function to be staged, its arguments' shapes, and the further arguments of `jit`."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    jit: dict[str, Any] = field(default_factory=dict)


PROGRAMS: dict[str, Callable[[Place], Built]] = {}
"""Every program by name."""
ONLY: dict[str, tuple[str, ...]] = {}
"""The platforms of the programs that are not for all of them."""


def program(*platforms: str) -> Callable[[Callable[[Place], Built]], Callable[[Place], Built]]:
    """Register a program, for some platforms or for all."""

    def register(build: Callable[[Place], Built]) -> Callable[[Place], Built]:
        PROGRAMS[build.__name__] = build
        ONLY[build.__name__] = platforms or ("cpu", "tpu", "cuda")
        return build

    return register


def manual(
    function: Callable[..., Any],
    mesh: Mesh,
    ins: Any,
    outs: Any,
    axes: frozenset[str] | None = None,
) -> Callable[..., Any]:
    """Return `function` under `shard_map`, manual over some axes or all, without the check."""
    shard_map: Any = getattr(jax, "shard_map", None)
    if shard_map is None:
        from jax.experimental import shard_map as module  # noqa: PLC0415 - gone from new releases

        shard_map = module.shard_map
    known = inspect.signature(shard_map).parameters
    more: dict[str, Any] = {"check_vma" if "check_vma" in known else "check_rep": False}
    if axes is not None and "axis_names" in known:
        more["axis_names"] = set(axes)
    elif axes is not None:
        more["auto"] = frozenset(mesh.axis_names) - axes
    return shard_map(function, mesh=mesh, in_specs=ins, out_specs=outs, **more)  # type: ignore[no-any-return]


def ring(count: int) -> list[tuple[int, int]]:
    """Return the pairs that send each device's part to the next."""
    return [(i, (i + 1) % count) for i in range(count)]


# Collectives


@program()
def collectives(place: Place) -> Built:
    """Every collective over one axis of four."""
    mesh = place.mesh(4)

    def body(x: Any) -> Any:
        total = lax.psum(x, "x")
        least = lax.pmin(x * 2, "x")
        most = lax.pmax(x - 1, "x")
        gathered = lax.all_gather(x, "x", axis=1, tiled=True)
        scattered = lax.psum_scatter(jnp.tile(x, (1, 4)), "x", scatter_dimension=1, tiled=True)
        exchanged = lax.all_to_all(x, "x", split_axis=1, concat_axis=0, tiled=True)
        moved = lax.ppermute(x, "x", ring(4))
        rank = lax.axis_index("x").astype(F32)
        return total + least * most + moved - rank, gathered, scattered, exchanged

    out = (P("x"), P("x"), P("x"), P("x"))
    spread = NamedSharding(mesh, P("x"))
    return Built(manual(body, mesh, P("x"), out), (place.arg(8, 16, on=spread),))


@program()
def subgroups(place: Place) -> Built:
    """Collectives over one axis of two, over both, and over listed groups."""
    mesh, line = place.mesh(2, 2), place.mesh(4)

    def body(x: Any) -> Any:
        rows, columns, both = lax.psum(x, "x"), lax.psum(x * 3, "y"), lax.pmax(x, ("x", "y"))
        moved = lax.ppermute(x, "y", [(0, 1)])
        wide = lax.all_gather(x, "y", axis=0, tiled=True)
        less = lax.psum_scatter(wide, "x", scatter_dimension=0, tiled=True)
        return jnp.exp(rows) - columns / both + moved, less

    def listed(x: Any) -> Any:
        return lax.psum(x, "x", axis_index_groups=[[0, 3], [1, 2]])

    def whole(x: Any, y: Any) -> Any:
        first, second = manual(body, mesh, P("x", "y"), (P("x", "y"), P("x", "y")))(x)
        return first, second, manual(listed, line, P("x"), P("x"))(y)

    spread = NamedSharding(mesh, P("x", "y"))
    return Built(
        whole, (place.arg(8, 8, on=spread), place.arg(8, 4, on=NamedSharding(line, P("x"))))
    )


@program("cpu", "cuda", "tpu")
def ragged(place: Place) -> Built:
    """A ragged all-to-all."""
    mesh = place.mesh(4)

    def body(*args: Any) -> Any:
        return lax.ragged_all_to_all(*args, axis_name="x")

    spread = NamedSharding(mesh, P("x"))
    sizes = [place.arg(16, dtype=S32, on=spread) for _ in range(4)]
    args = (place.arg(32, 8, on=spread), place.arg(64, 8, on=spread), *sizes)
    return Built(manual(body, mesh, P("x"), P("x")), args)


# Control flow


@program()
def while_collectives(place: Place) -> Built:
    """A while loop with collectives in its body and in its condition."""
    mesh = place.mesh(4)

    def step(carry: Any) -> Any:
        count, state, weight = carry
        state = jnp.tanh(state @ weight) + lax.psum(state, "x") * 0.25
        return count + 1.0, lax.ppermute(state, "x", ring(4)), weight

    def more(carry: Any) -> Any:
        return lax.pmin(10.0 - carry[0], "x") > 0

    def body(x: Any, weight: Any) -> Any:
        return lax.while_loop(more, step, (jnp.float32(0), x, weight))[1]

    spread, same = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())
    args = (place.arg(8, 16, on=spread), place.arg(16, 16, on=same))
    return Built(manual(body, mesh, (P("x"), P()), P("x")), args, {"donate_argnums": 0})


@program()
def loops(place: Place) -> Built:
    """Loops with a fixed trip count: fori_loop, scan, slices updated in a loop."""

    def body(x: Any, w: Any) -> Any:
        y = lax.fori_loop(0, 7, lambda i, s: jnp.sin(s @ w) - i, x)
        carry, parts = lax.scan(lambda c, r: (c * 0.5 + r, c - r), jnp.zeros(16), y)
        start = jnp.zeros((5, 8, 16))
        rows = lax.fori_loop(0, 5, lambda i, a: a.at[i].set(y * (2.0 + i)), start)
        return carry, parts, rows

    return Built(body, (place.arg(8, 16), place.arg(16, 16)))


@program()
def branches(place: Place) -> Built:
    """Conditionals: by a predicate, by an index, one with a collective inside."""
    mesh = place.mesh(4)

    def body(p: Any, k: Any, x: Any) -> Any:
        y = lax.cond(p, lambda v: lax.psum(v, "x") - 1.0, lambda v: jnp.cos(v) / 3.0, x)
        kinds = [jnp.exp, lambda v: v @ v.T @ v, lambda v: lax.cumsum(v, axis=0)]
        return lax.switch(k, kinds, y)

    same, spread = NamedSharding(mesh, P()), NamedSharding(mesh, P("x"))
    flag, index = place.arg(dtype=jnp.bool_, on=same), place.arg(dtype=S32, on=same)
    return Built(
        manual(body, mesh, (P(), P(), P("x")), P("x")), (flag, index, place.arg(32, 8, on=spread))
    )


# Single-device operations


@program()
def indexing(place: Place) -> Built:
    """Sort, gather, scatter, cumulative sums, windows, arguments of the largest."""

    def body(x: Any, i: Any, u: Any) -> Any:
        ordered, keys = jnp.sort(x, axis=1), jnp.argsort(x[:, 0])
        added, put = x.at[i].add(u), x.at[i, 1].set(3.0)
        most = x.at[i].max(u, mode="drop")
        taken = jnp.take(x, i, axis=1)
        windows = lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 1), "SAME")
        return ordered, keys, added, put, most, taken, windows, jnp.cumsum(x, 0), jnp.argmax(x, 1)

    return Built(body, (place.arg(12, 8), place.arg(4, dtype=S32), place.arg(4, 8)))


@program()
def elementwise(place: Place) -> Built:
    """What does not move data, and what moves it without computing."""

    def body(x: Any, y: Any, n: Any, m: Any) -> Any:
        a = jnp.where(x > y, x - y, x / (y + 2.0))
        b = lax.clamp(0.25, lax.reduce_precision(a, 5, 10), 4.0) ** y
        c = jnp.concatenate([a.T, lax.rev(b.T, (0,))], axis=0)[1:7:2, 2:6]
        d = lax.pad(c, 1.5, ((1, 2, 0), (0, 1, 1)))
        e = (n << 3) ^ (m >> 1) & jnp.arange(8, dtype=S32)[None, :]
        f = lax.bitcast_convert_type(e, F32).astype(BF16).astype(jnp.float16)
        g = lax.rem(n, m) - lax.population_count(m) + (n <= m).astype(S32)
        h = lax.broadcasted_iota(S32, (4, 8), 1) * 3 - lax.broadcasted_iota(S32, (4, 8), 0)
        z = lax.complex(a, b)
        return (
            d,
            f,
            g - h,
            jnp.abs(z * z),
            jnp.round(a),
            jnp.atan2(a, b) if hasattr(jnp, "atan2") else b,
        )

    sizes = {"dtype": S32}
    return Built(
        body, (place.arg(4, 8), place.arg(4, 8), place.arg(4, 8, **sizes), place.arg(4, 8, **sizes))
    )


@program()
def reductions(place: Place) -> Built:
    """Reductions over some dimensions, with several reducers and several results."""

    def body(x: Any, n: Any) -> Any:
        both = lax.reduce((x, x * 2), (0.0, 1.0), lambda a, b: (a[0] + b[0], a[1] * b[1]), (1,))
        norm = x - jnp.mean(x, axis=(0, 2), keepdims=True)
        any_, low = jnp.any(n > 3, axis=0), jnp.min(n, axis=1)
        soft = jax.nn.softmax(norm, axis=-1)
        return both, jnp.var(x, axis=2), any_, low, soft, jnp.prod(x, axis=0), lax.top_k(x, 3)

    return Built(body, (place.arg(4, 6, 8), place.arg(6, 5, dtype=S32)))


@program()
def dots(place: Place) -> Built:
    """Matrix products: plain, batched, bf16, int8, with a chosen precision."""

    def body(x: Any, y: Any, b: Any, n: Any) -> Any:
        plain = lax.dot_general(x, y, (((1,), (0,)), ((), ())), precision=lax.Precision.HIGHEST)
        half = lax.dot(x.astype(BF16), y.astype(BF16), preferred_element_type=F32)
        batch = lax.dot_general(b, b, (((2,), (1,)), ((0,), (0,))))
        ints = lax.dot_general(n, n, (((1,), (1,)), ((), ())), preferred_element_type=S32)
        return plain - half, jnp.einsum("bij,bkj->bik", b, batch), ints, plain.T @ x

    return Built(
        body,
        (place.arg(16, 16), place.arg(16, 16), place.arg(4, 8, 8), place.arg(16, 32, dtype=S8)),
    )


@program()
def convolutions(place: Place) -> Built:
    """Convolutions: strided, dilated, grouped, and the gradient of one."""

    def body(x: Any, k: Any, g: Any) -> Any:
        shapes = ("NHWC", "HWIO", "NHWC")
        conv = partial(lax.conv_general_dilated, dimension_numbers=shapes)
        first = conv(x, k, (2, 2), "SAME")
        second = conv(x, g, (1, 1), "VALID", rhs_dilation=(2, 1), feature_group_count=4)
        slope = jax.grad(lambda w: jnp.sum(conv(x, w, (1, 1), ((1, 0), (0, 1))) ** 2))(k)
        return jax.nn.relu(first), second, slope

    return Built(body, (place.arg(2, 8, 8, 4), place.arg(3, 3, 4, 8), place.arg(3, 3, 1, 4)))


@program()
def randoms(place: Place) -> Built:
    """Random numbers of both generators, and arrays of keys."""

    def body(seed: Any) -> Any:
        keys = jax.random.split(jax.random.key(seed), 3)
        normal = jax.random.normal(keys[0], (4, 8))
        bits = jax.random.bits(jax.random.key(seed, impl="rbg"), (16,))
        return normal, jax.random.randint(keys[1], (5,), 0, 9), bits, keys

    return Built(body, (place.arg(dtype=S32),))


@program()
def transforms(place: Place) -> Built:
    """Fourier transforms."""

    def body(x: Any) -> Any:
        return jnp.fft.irfft(jnp.fft.rfft(x, axis=0) * 2.0, axis=0), jnp.abs(jnp.fft.fft2(x))

    return Built(body, (place.arg(8, 16),))


@program()
def factorisations(place: Place) -> Built:
    """Linear algebra: custom calls on some platforms, loops on others."""

    def body(x: Any) -> Any:
        lower = jnp.linalg.cholesky(x @ x.T + jnp.eye(4))
        return lower, lax.linalg.triangular_solve(lower, x, left_side=True, lower=True)

    return Built(body, (place.arg(4, 4),))


@program("cpu")
def lapack(place: Place) -> Built:
    """Linear algebra that is a library call on CPU."""

    def body(x: Any) -> Any:
        values, vectors = jnp.linalg.eigh(x + x.T)
        return values, vectors, jnp.linalg.solve(x, x.T), jnp.linalg.qr(x)[0]

    return Built(body, (place.arg(4, 4),))


@program()
def constants(place: Place) -> Built:
    """Literals that `as_text` leaves out, and small ones."""
    table = np.linspace(-1, 1, 192, dtype=np.float32).reshape(12, 16)
    order = np.arange(40, dtype=np.int32) * 7 % 40

    def body(x: Any) -> Any:
        mask = np.array([True, False, True, True])
        small = jnp.array([1.5, -2.0, jnp.inf, jnp.nan])
        return x @ table, jnp.take(x.reshape(-1), order), jnp.where(mask, small, x[0, :4]), x * 3.25

    return Built(body, (place.arg(8, 12),))


@program()
def donation(place: Place) -> Built:
    """Two donated arguments and one that is kept; one argument is never used."""

    def body(x: Any, y: Any, z: Any, unused: Any) -> Any:
        return x + jnp.sin(z), {"y": y * z - 1.0, "z": z.sum(0)}

    args = [place.arg(8, 8) for _ in range(4)]
    return Built(body, tuple(args), {"donate_argnums": (0, 1), "keep_unused": True})


@program()
def barriers(place: Place) -> Built:
    """Optimisation barriers, rematerialisation, a custom derivative."""

    def body(x: Any, y: Any) -> Any:
        a, b = lax.optimization_barrier((x * 2.0, jnp.sin(y)))
        slope = jax.grad(lambda v: jnp.sum(jax.checkpoint(lambda w: jnp.sin(jnp.sin(w)))(v) * b))(x)
        return a - b, slope

    return Built(body, (place.arg(4, 8), place.arg(4, 8)))


@program("cpu")
def callbacks(place: Place) -> Built:
    """A call back into Python."""

    def body(x: Any) -> Any:
        shape = jax.ShapeDtypeStruct((4,), F32)
        return jax.pure_callback(lambda v: np.asarray(v) * 2, shape, x) + jnp.sin(x)

    return Built(body, (place.arg(4),))


# Automatic partitioning, memory, hosts


@program()
def partitioned(place: Place) -> Built:
    """What the partitioner makes of shardings on arguments and in the middle."""
    mesh = place.mesh(2, 2)

    def body(x: Any, w: Any, v: Any) -> Any:
        hidden = lax.with_sharding_constraint(jax.nn.relu(x @ w), NamedSharding(mesh, P("x", "y")))
        out = lax.with_sharding_constraint(hidden @ v, NamedSharding(mesh, P("x", None)))
        turned = lax.with_sharding_constraint(hidden.T, NamedSharding(mesh, P("x", "y")))
        return out, turned, jnp.sum(hidden, axis=0)

    specs = (P("x", None), P(None, "y"), P("y", None))
    args = [place.arg(16, 16, on=NamedSharding(mesh, s)) for s in specs]
    return Built(body, tuple(args))


@program()
def partly_manual(place: Place) -> Built:
    """A shard_map over one axis of two, the other one automatic."""
    mesh = place.mesh(2, 2)

    def body(x: Any, w: Any) -> Any:
        return lax.psum(jnp.tanh(x @ w), "x") * 0.5

    def whole(x: Any, w: Any) -> Any:
        y = manual(body, mesh, (P("x"), P()), P(), frozenset({"x"}))(x, w)
        return lax.with_sharding_constraint(y - 1.0, NamedSharding(mesh, P(None, "y")))

    args = (
        place.arg(16, 8, on=NamedSharding(mesh, P("x"))),
        place.arg(8, 8, on=NamedSharding(mesh, P(None, "y"))),
    )
    return Built(whole, args)


@program("cpu", "tpu")
def host_compute(place: Place) -> Built:
    """A part that is computed on the host."""
    from jax.experimental import compute_on as module  # noqa: PLC0415 - only here

    def on_host(v: Any) -> Any:
        return v * 2.0 + 1.0

    if (
        "compute_type" in inspect.signature(module.compute_on).parameters
        and "f" in inspect.signature(module.compute_on).parameters
    ):
        space = jax.memory.Space
        hosted = module.compute_on(
            on_host, compute_type="device_host", out_memory_spaces=space.Device
        )
    else:
        hosted = module.compute_on("device_host")(jax.jit(on_host))

    def body(x: Any) -> Any:
        return jnp.sin(hosted(jnp.cos(x)))

    return Built(body, (place.arg(8, 128),))


@program("cpu", "tpu")
def offload(place: Place) -> Built:
    """Arguments and results in the host's memory."""
    mesh = place.mesh(4)
    there = NamedSharding(mesh, P("x"), memory_kind="pinned_host")
    here = NamedSharding(mesh, P("x"), memory_kind="device")

    def body(x: Any, y: Any) -> Any:
        z = jax.device_put(x, here) * 2.0 - y
        return jax.device_put(z, there), jnp.sum(z)

    args = (place.arg(8, 128, on=there), place.arg(8, 128, on=here))
    return Built(body, args, {"out_shardings": (there, NamedSharding(mesh, P()))})


@program("tpu", "cuda")
def kernel(place: Place) -> Built:
    """A kernel of one's own."""
    from jax.experimental import pallas as pl  # noqa: PLC0415 - only here

    def add(x: Any, y: Any, o: Any) -> None:
        o[...] = x[...] + y[...] * 2.0

    shape = jax.ShapeDtypeStruct((32, 128), F32)
    spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
    call = pl.pallas_call(add, out_shape=shape, grid=(4,), in_specs=[spec, spec], out_specs=spec)
    return Built(lambda x, y: call(x, y) - 1.0, (place.arg(32, 128), place.arg(32, 128)))


# A model


def transformer(layers: int, width: int, heads: int, hidden: int) -> tuple[Callable[..., Any], Any]:
    """Return a training step of a transformer with unrolled layers, and its parameters' shapes."""
    one: dict[str, tuple[int, ...]] = {
        "q": (width, width),
        "k": (width, width),
        "v": (width, width),
        "o": (width, width),
    }
    one |= {"up": (width, hidden), "down": (hidden, width), "s1": (width,), "s2": (width,)}
    shapes = {f"layer{i:02d}": one for i in range(layers)}

    def norm(x: Any, scale: Any) -> Any:
        return x * lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * scale

    def layer(p: Any, x: Any) -> Any:
        h = norm(x, p["s1"])
        q, k, v = ((h @ p[n]).reshape(*h.shape[:2], heads, -1) for n in "qkv")
        scores = jnp.einsum("bihd,bjhd->bhij", q, k) / np.sqrt(width // heads)
        causal = jnp.tril(jnp.ones((h.shape[1], h.shape[1]), bool))
        weights = jax.nn.softmax(jnp.where(causal, scores, -1e9), axis=-1)
        x = x + jnp.einsum("bhij,bjhd->bihd", weights, v).reshape(h.shape) @ p["o"]
        return x + jax.nn.gelu(norm(x, p["s2"]) @ p["up"]) @ p["down"]

    def loss(params: Any, x: Any, y: Any) -> Any:
        for name in sorted(params):
            x = layer(params[name], x)
        return jnp.mean((x - y) ** 2)

    def step(params: Any, x: Any, y: Any) -> Any:
        value, slopes = jax.value_and_grad(loss)(params, x, y)
        return value, jax.tree_util.tree_map(lambda p, g: p - 0.01 * g, params, slopes)

    return step, shapes


SPLIT = {"q": P(None, "y"), "k": P(None, "y"), "v": P(None, "y"), "o": P("y", None)} | {
    "up": P(None, "y"), "down": P("y", None), "s1": P(), "s2": P()
}  # fmt: skip


def train_step(place: Place, mesh: Mesh, layers: int, width: int = 32) -> Built:
    """Return a transformer's training step, data parallel over `x`, tensor parallel over `y`."""
    step, shapes = transformer(layers, width, 4, 2 * width)
    params = {
        layer: {n: place.arg(*s, on=NamedSharding(mesh, SPLIT[n])) for n, s in part.items()}
        for layer, part in shapes.items()
    }
    batch = place.arg(8, 16, width, on=NamedSharding(mesh, P("x")))
    kept = jax.tree_util.tree_map(lambda p: p.sharding, params)
    out = (NamedSharding(mesh, P()), kept)
    return Built(step, (params, batch, batch), {"out_shardings": out, "donate_argnums": 0})


@program()
def training(place: Place) -> Built:
    """A transformer of two layers, trained for a step."""
    return train_step(place, place.mesh(2, 2), 2)


@program("big")
def transformer12(place: Place) -> Built:
    """A transformer of twelve layers on eight devices."""
    return train_step(place, place.mesh(2, 4), 12, 64)


@program("big")
def transformer80(place: Place) -> Built:
    """A transformer of eighty layers on eight devices."""
    return train_step(place, place.mesh(2, 4), 80, 64)
