"""Operations on explicit axes that had no rule, or a wrong one, when people first met them.

Each is a line of ordinary code that was right on one device. What it makes must have a sharding
that a person would write down, and its gradient that of what the gradient is taken by.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, deviation, probe
from conformance.kit.endings import ending

from ._helpers import numbers, put, spec_of

HALVES = 2


def halves(env):
    """Return a mesh of two devices along the explicit axis `x`."""
    return env.mesh(HALVES, "x", explicit=True)


@probe(
    source="jax-ml/jax#35013",
    devices=2,
    platforms=("cpu",),
    releases="jax>=0.6.1",
    deviations=[
        deviation(
            "jax>=0.7,<0.9.1",
            error="AssertionError",
            match="Unexpected XLA sharding override",
            reason="the constant that stands for nothing had no sharding",
            issue="jax-ml/jax#35013",
        )
    ],
)
def slice_beyond_the_end(env):
    """`x[:, 100:116]` of eight columns is empty, and sharded as x is: not compiled for a while."""
    mesh = halves(env)
    with env.compat.set_mesh(mesh):
        out = jax.jit(lambda x: x[:, 100:116])(put(mesh, numbers(8, 8), None, "x"))
    return Observed((out.shape, spec_of(out)), ((8, 0), "[None, 'x']"))


@probe(
    source="jax-ml/jax#33787",
    devices=2,
    platforms=("cpu",),
    releases="jax>=0.6.1",
    deviations=[
        deviation(
            "jax<0.7",
            error="ShardingTypeError",
            match="scatter is not implemented",
            reason="a view writes both parts into an array of zeros, and scatter had no rule",
            issue="jax-ml/jax#33787",
        ),
        deviation(
            "jax==0.7.0",
            outcome="ok",
            reason="the zeros had no sharding, and the result took theirs: it is gathered",
            issue="jax-ml/jax#33787",
        ),
        deviation(
            "jax>=0.7.2,<0.8.2",
            error="ShardingTypeError",
            match="out sharding could not be resolved",
            reason="the zeros had no sharding, which an update does not accept any more",
            issue="jax-ml/jax#33787",
        ),
    ],
)
def complex_numbers_seen_as_floats(env):
    """`z.view(float32)`, rows over x, stays in rows: it was refused, gathered, refused again."""
    mesh = halves(env)
    with env.compat.set_mesh(mesh):
        z = put(mesh, numbers(4, 4).view(np.complex64), "x")
        x = jax.jit(lambda z: z.view(jnp.float32))(z)
    return Observed({"spec": spec_of(x), "value": x}, {"spec": "['x']", "value": numbers(4, 4)})


@probe(
    source="jax-ml/jax#33226",
    devices=2,
    platforms=("cpu",),
    releases="jax>=0.6.1",
    deviations=[
        deviation(
            "jax<0.8.1",
            error="ValueError",
            match="should match the aval mesh",
            reason="the counts, an array, were handed to the automatic part as a keyword",
            issue="jax-ml/jax#33226",
        )
    ],
)
def repeated_by_counts_of_an_array(env):
    """`repeat(..., out_sharding=)` with counts that are a jax array: a ValueError up to 0.8.0."""
    with env.compat.set_mesh(halves(env)):
        x, counts = jnp.asarray(numbers(3, 2)), jnp.arange(3)
        out = jnp.repeat(x, counts, axis=0, total_repeat_length=3, out_sharding=P())
    return Observed(out, numbers(3, 2)[[1, 2, 2]])


@probe(
    source="jax-ml/jax#31793",
    devices=2,
    platforms=("cpu",),
    releases="jax>=0.6.1",
    deviations=[
        deviation(
            "jax<0.7.2",
            outcome="ok",
            reason="the type kept the mesh of the context",
            issue="jax-ml/jax#31793",
        )
    ],
)
def type_of_what_was_put_on_one_device(env):
    """`device_put` to one device: the type of the array has no mesh any more, since 0.7.2."""
    with env.compat.set_mesh(halves(env)):
        x = jax.device_put(jnp.zeros(8), SingleDeviceSharding(env.devices[0]))
        return Observed(bool(jax.typeof(x).sharding.mesh.empty), reference=True)


@probe(
    source="jax-ml/jax#29837",
    devices=2,
    platforms=("cpu",),
    releases="jax>=0.6.1",
    deviations=[
        deviation(
            "jax<0.7",
            error="ShardingTypeError",
            match="scatter is not implemented",
            reason="what is made under an explicit mesh has its types, and scatter had no rule",
            issue="jax-ml/jax#29837",
        )
    ],
)
def update_of_what_is_made_here(env):
    """`zeros(...).at[::2, ::2].set(...)` under an explicit mesh, in jit and out of it."""

    def f():
        return jnp.zeros((4, 4)).at[::2, ::2].set(jnp.ones((2, 2)))

    with env.compat.set_mesh(halves(env)):
        made = [f(), jax.jit(f)()]
    exact = np.zeros((4, 4), np.float32)
    exact[::2, ::2] = 1
    return Observed(made, [exact, exact])


@probe(
    source="jax-ml/jax#28111",
    devices=2,
    platforms=("cpu",),
    releases="jax>=0.6",
    deviations=[
        deviation(
            "jax<0.6.1",
            error="ShardingTypeError",
            match="scatter is not implemented",
            reason="scatter had no rule",
            issue="jax-ml/jax#28111",
        )
    ],
)
def update_in_each_row(env):
    """`vmap` of an update, rows over x: each row is written where it lies, since 0.6.1."""
    mesh = halves(env)
    with env.compat.set_mesh(mesh):
        x, i = put(mesh, numbers(4, 3), "x"), put(mesh, np.array([0, 1, 2, 0]), "x")
        out = jax.jit(jax.vmap(lambda x, i: x.at[i].set(-1)))(x, i)
    exact = numbers(4, 3)
    exact[np.arange(4), [0, 1, 2, 0]] = -1
    return Observed({"spec": spec_of(out), "value": out}, {"spec": "['x']", "value": exact})


@probe(
    source="jax-ml/jax#29818",
    devices=2,
    platforms=("cpu",),
    releases="jax>=0.6.1",
    deviations=[
        deviation(
            "jax<0.7",
            error="ValueError",
            match="stablehlo.complex",
            reason="the parts were given the sharding of the result, and with it its dtype",
            issue="jax-ml/jax#29818",
        )
    ],
)
def complex_number_of_two_parts(env):
    """`lax.complex(x, y)` under an explicit mesh: a module that does not verify, up to 0.6.2."""
    with env.compat.set_mesh(halves(env)):
        z = jax.jit(lax.complex)(jnp.asarray(numbers(8)), -numbers(8))
    return Observed(z, (1 - 1j) * numbers(8).astype(np.complex64))


@probe(
    source="jax-ml/jax#29637",
    devices=2,
    platforms=("cpu",),
    releases="jax>=0.6.1",
    deviations=[
        deviation(
            "jax<0.7",
            error="ShardingTypeError",
            match="select `which` must be scalar or have the same sharding",
            reason="what is not mapped over was spread without the mesh axis of the lanes",
            issue="jax-ml/jax#29637",
        )
    ],
)
def switch_in_sharded_lanes(env):
    """`vmap` of a switch, lanes over x, that reads a shared number and one it draws."""

    def lane(key, shared, index):
        drawn = lambda i: jax.random.uniform(key, ()) * 0 + i  # noqa: E731 - short
        return lax.switch(index, [lambda i: shared + i, drawn, lambda i: i - shared], index)

    mesh = halves(env)
    with env.compat.set_mesh(mesh):
        lanes = jax.jit(jax.vmap(lane, in_axes=(None, None, 0)))
        key, index = jax.random.key(0), put(mesh, np.array([0, 1, 2, 0], np.int32), "x")
        out = lanes(key, jnp.float32(10), index)
    exact = np.array([10, 1, -8, 10], np.float32)
    return Observed({"spec": spec_of(out), "value": out}, {"spec": "['x']", "value": exact})


@probe(
    source="jax-ml/jax#29859",
    devices=2,
    platforms=("cpu",),
    releases="jax>=0.6",
    deviations=[
        deviation(
            "jax<0.7",
            error="AssertionError",
            reason="the new rule of reshape took trailing ones for parts of what is split",
            issue="jax-ml/jax#29859",
        )
    ],
)
def reshape_with_ones_at_the_end(env):
    """Rows over x split or merged beside axes of size 1 stay rows: a bare AssertionError in 0.6."""
    mesh = halves(env)
    of = {(12, 1): (2, 6, 1), (12, 1, 1): (2, 6, 1, 1), (2, 6, 1): (12, 1)}
    with env.compat.set_mesh(mesh):
        made = [
            jax.jit(lambda x, to=to: x.reshape(to))(put(mesh, numbers(*shape), "x"))
            for shape, to in of.items()
        ]
    return Observed([(x.shape, spec_of(x)) for x in made], [(to, "['x']") for to in of.values()])


@probe(
    source="jax-ml/jax#35181",
    devices=1,
    platforms=("cpu",),
    releases="jax>=0.6.1",
    deviations=[
        deviation(
            "jax<0.8.2",
            outcome="ok",
            reason="an axis of size 1 counts as broadcast: the gradient has not its name",
            issue="jax-ml/jax#35181",
        ),
        deviation(
            "jax>=0.8.2,<0.9.1",
            error="ValueError",
            match="expected cotangent type",
            reason="the same, and now it is noticed",
            issue="jax-ml/jax#35181",
        ),
    ],
)
def gradient_by_an_axis_of_one(env):
    """The gradient through `expand_dims` of a vector over a mesh of one device: sharded as it is.

    That is how code for many devices is tried on one.
    """
    mesh = env.mesh(1, "x", explicit=True)
    with env.compat.set_mesh(mesh):
        gradient = jax.jit(jax.grad(lambda x: jnp.expand_dims(x, -1).sum()))
        return Observed(spec_of(gradient(put(mesh, numbers(1), "x"))), "['x']")


@probe(
    source="jax-ml/jax#28090",
    devices=4,
    platforms=("cpu",),
    releases="jax>=0.6",
    deviations=[
        deviation(
            "jax<0.6.1",
            error="ShardingTypeError",
            match="conv_general_dilated is not implemented",
            reason="convolutions had no rule, and windows had to be trivial along sharded axes",
            issue="jax-ml/jax#28090",
        )
    ],
)
def windows_along_a_sharded_axis(env):
    """A convolution and a pooling along an axis over y: halos are exchanged, and it stays there."""
    mesh = env.mesh((2, 2), ("x", "y"), explicit=True)

    def f(x):
        dims = ("NWC", "WIO", "NWC")
        summed = lax.conv_general_dilated(
            x, np.ones((3, 1, 1), np.float32), (1,), "SAME", dimension_numbers=dims
        )
        return summed, lax.reduce_window(summed, -np.inf, lax.max, (1, 2, 1), (1, 2, 1), "SAME")

    x = numbers(2, 8, 1)
    with env.compat.set_mesh(mesh):
        summed, most = jax.jit(f)(put(mesh, x, "x", "y"))
    padded = np.pad(x, ((0, 0), (1, 1), (0, 0)))
    exact = padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]
    return Observed(
        {"specs": [spec_of(summed), spec_of(most)], "values": [summed, most]},
        {
            "specs": ["['x', 'y']"] * 2,
            "values": [exact, np.maximum(exact[:, ::2], exact[:, 1::2])],
        },
    )


@probe(
    source="jax-ml/jax#29162",
    devices=2,
    platforms=("cpu",),
    releases="jax>=0.6",
    deviations=[
        deviation(
            "jax<0.6.2",
            error="ValueError",
            match="context mesh .* should match the aval mesh",
            reason="its type is of the explicit mesh, and within the axes are manual",
            issue="jax-ml/jax#29162",
        ),
        deviation(
            "jax>=0.6.2",
            error="NotImplementedError",
            match="Closing over inputs to shard_map",
            reason="not done, and said so",
            issue="jax-ml/jax#29162",
        ),
    ],
)
def closed_over_by_shard_map(env):
    """A function in shard_map that closes over an array on explicit axes: hand it in instead."""
    mesh = halves(env)
    w, x = put(mesh, numbers(2), "x"), put(mesh, numbers(4), "x")
    with env.compat.set_mesh(mesh):
        f = env.compat.shard_map(
            lambda x: x * w.sum(), mesh=mesh, in_specs=P("x"), out_specs=P("x")
        )
        return Observed(jax.jit(f)(x), numbers(4))


@probe(
    source="jax-ml/jax#26552",
    devices=2,
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax==0.5.0",
            error="XlaRuntimeError",
            match="expects an array with exactly one shard",
            reason="an array on one device was taken for one in shards over the mesh",
            issue="jax-ml/jax#26552",
        )
    ],
)
def put_under_a_mesh(env):
    """`device_put` of a jax array under a mesh, to shards of it: an error in 0.5.0 alone."""
    mesh = env.mesh(HALVES, "x")
    with env.compat.set_mesh(mesh):
        x = jax.device_put(jnp.asarray(numbers(8)), NamedSharding(mesh, P("x")))
    return Observed((spec_of(x), x), ("['x']", numbers(8)))


@probe(
    source="jax-ml/jax#37047",
    devices=2,
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax>=0.10.1",
            error="ValueError",
            match="Unconstrained dims are not allowed when passed to out_shardings",
            reason="no longer accepted: leave the result out, or constrain it within the function",
            issue="jax-ml/jax#37047",
        )
    ],
)
def results_left_to_the_compiler(env):
    """`P.UNCONSTRAINED` in `out_shardings`, an axis left to the compiler: refused since 0.10.1."""
    mesh = env.mesh(HALVES, "x")
    free = NamedSharding(mesh, P(P.UNCONSTRAINED))
    return Observed(jax.jit(lambda x: 2 * x, out_shardings=free)(numbers(8)), 2 * numbers(8))


@probe(
    source="jax-ml/jax#31795",
    devices=2,
    platforms=("cpu",),
    releases="jax>=0.6",
    deviations=[
        deviation(
            "jax>=0.7,<0.8",
            outcome="ok",
            reason="accepted; its gradient, a scatter-add, hides an all-reduce",
            issue="jax-ml/jax#31795",
        )
    ],
)
def rows_by_sharded_indices(env):
    """`x[i]`, x whole and i over x: to say where it goes is asked for, except by 0.7."""
    mesh = halves(env)
    with env.compat.set_mesh(mesh):
        x, i = put(mesh, numbers(4, 2)), put(mesh, np.array([0, 2]), "x")
        ended = ending(jax.jit(lambda x, i: x[i]), x, i, words=(".get(out_sharding=)",))
    return Observed(ended, "ShardingTypeError: .get(out_sharding=)")


@probe(
    source="jax-ml/jax#33029",
    devices=2,
    platforms=("cpu",),
    releases="jax>=0.7",
    deviations=[
        deviation(
            "jax<0.8.1",
            error="ValueError",
            match="should match the mesh of sharding",
            reason="the zeros that a gradient starts from had the mesh of the automatic part",
            issue="jax-ml/jax#33029",
        )
    ],
)
def gradient_through_automatic_steps(env):
    """The gradient of a scan whose steps drop into `auto_axes`: refused up to 0.8.0."""
    with env.compat.set_mesh(halves(env)):

        def f(w, x):
            step = jax.sharding.auto_axes(lambda x: w * x, out_sharding=P())
            return lax.scan(lambda c, _: (step(c), None), x, None, length=3)[0]

        return Observed(jax.jit(jax.grad(f))(2.0, 2.0), np.float64(24))
