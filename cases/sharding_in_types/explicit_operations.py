"""Operations on Explicit axes that had no sharding rule, or a wrong rule, when users met them.

Each case is a line of ordinary code that was right on one device. Its result must have the sharding
that a person would write down, and its gradient the sharding of the argument.
"""

from __future__ import annotations

import importlib

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import ending

from ._helpers import format_spec, numbers, put, reshard

defaults(devices=2, platforms=("cpu",))

DEVICES = 2


def make_two_device_mesh(env):
    """Return a mesh of two devices along the explicit axis `x`."""
    return env.mesh(DEVICES, "x", explicit=True)


XLA_REPLICATED_EMPTY_RESULT = deviation(
    "jax>=0.7,<0.9.1",
    error="AssertionError",
    match="Unexpected XLA sharding override",
    reason="XLA replicated the empty result, which the check of output shardings refused",
    issue="jax-ml/jax#35013",
)


@probe(
    source="jax-ml/jax#35013",
    releases="jax>=0.6.1",
    deviations=[XLA_REPLICATED_EMPTY_RESULT],
)
def slice_beyond_the_end(env):
    """`x[:, 100:116]` of eight columns is empty, and sharded like x.

    It did not compile from 0.7.0 to 0.9.0.1.
    """
    mesh = make_two_device_mesh(env)
    with env.compat.set_mesh(mesh):
        out = jax.jit(lambda x: x[:, 100:116])(put(mesh, numbers(8, 8), None, "x"))
    return Observed((out.shape, format_spec(out)), ((8, 0), "[None, 'x']"))


NO_SCATTER_RULE_FOR_VIEW = deviation(
    "jax<0.7",
    error="ShardingTypeError",
    match="scatter is not implemented",
    reason="a view writes both parts into an array of zeros, and scatter had no sharding rule",
    issue="jax-ml/jax#33787",
)
VIEW_GATHERED = deviation(
    "jax==0.7.0",
    outcome="ok",
    reason="the zeros had no sharding, and the result took it from them: it is gathered",
    issue="jax-ml/jax#33787",
)
UNSHARDED_ZEROS_REFUSED = deviation(
    "jax>=0.7.2,<0.8.2",
    error="ShardingTypeError",
    match="out sharding could not be resolved",
    reason="the zeros had no sharding, which an update no longer accepts",
    issue="jax-ml/jax#33787",
)


@probe(
    source="jax-ml/jax#33787",
    releases="jax>=0.6.1",
    deviations=[NO_SCATTER_RULE_FOR_VIEW, VIEW_GATHERED, UNSHARDED_ZEROS_REFUSED],
)
def complex_numbers_seen_as_floats(env):
    """`z.view(float32)`, rows over x, stays in rows; it was refused, gathered, refused again."""
    mesh = make_two_device_mesh(env)
    with env.compat.set_mesh(mesh):
        z = put(mesh, numbers(4, 4).view(np.complex64), "x")
        x = jax.jit(lambda z: z.view(jnp.float32))(z)
    return Observed({"spec": format_spec(x), "value": x}, {"spec": "['x']", "value": numbers(4, 4)})


COUNTS_PASSED_BY_KEYWORD = deviation(
    "jax<0.8.1",
    error="ValueError",
    match="should match the aval mesh",
    reason="repeat passed the counts, an array, to auto_axes as a keyword argument",
    issue="jax-ml/jax#33226",
)


@probe(
    source="jax-ml/jax#33226",
    releases="jax>=0.6.1",
    deviations=[COUNTS_PASSED_BY_KEYWORD],
)
def repeated_by_counts_of_an_array(env):
    """`repeat(..., out_sharding=)` with counts in a jax array is a ValueError up to 0.8.0."""
    with env.compat.set_mesh(make_two_device_mesh(env)):
        x, counts = jnp.asarray(numbers(3, 2)), jnp.arange(3)
        out = jnp.repeat(x, counts, axis=0, total_repeat_length=3, out_sharding=P())
    return Observed(out, numbers(3, 2)[[1, 2, 2]])


TYPE_KEPT_CONTEXT_MESH = deviation(
    "jax<0.7.2",
    outcome="ok",
    reason="the type kept the mesh of the context",
    issue="jax-ml/jax#31793",
)


@probe(source="jax-ml/jax#31793", releases="jax>=0.6.1", deviations=[TYPE_KEPT_CONTEXT_MESH])
def type_of_what_was_put_on_one_device(env):
    """After `device_put` to one device, the type of an array has no mesh, from 0.7.2."""
    with env.compat.set_mesh(make_two_device_mesh(env)):
        x = jax.device_put(jnp.zeros(8), SingleDeviceSharding(env.devices[0]))
        return Observed(bool(jax.typeof(x).sharding.mesh.empty), reference=True)


NO_SCATTER_RULE_FOR_NEW_ARRAY = deviation(
    "jax<0.7",
    error="ShardingTypeError",
    match="scatter is not implemented",
    reason="an array made under an explicit mesh has its types, and scatter had no sharding rule",
    issue="jax-ml/jax#29837",
)


@probe(
    source="jax-ml/jax#29837",
    releases="jax>=0.6.1",
    deviations=[NO_SCATTER_RULE_FOR_NEW_ARRAY],
)
def update_of_what_is_made_here(env):
    """`zeros(...).at[::2, ::2].set(...)` runs under an explicit mesh, inside and outside of jit."""

    def f():
        return jnp.zeros((4, 4)).at[::2, ::2].set(jnp.ones((2, 2)))

    with env.compat.set_mesh(make_two_device_mesh(env)):
        results = [f(), jax.jit(f)()]
    exact = np.zeros((4, 4), np.float32)
    exact[::2, ::2] = 1
    return Observed(results, [exact, exact])


NO_SCATTER_RULE = deviation(
    "jax<0.6.1",
    error="ShardingTypeError",
    match="scatter is not implemented",
    reason="scatter had no sharding rule",
    issue="jax-ml/jax#28111",
)


@probe(source="jax-ml/jax#28111", releases="jax>=0.6", deviations=[NO_SCATTER_RULE])
def update_in_each_row(env):
    """`vmap` of an update, rows over x, writes each row on its device, from 0.6.1."""
    mesh = make_two_device_mesh(env)
    with env.compat.set_mesh(mesh):
        x, i = put(mesh, numbers(4, 3), "x"), put(mesh, np.array([0, 1, 2, 0]), "x")
        out = jax.jit(jax.vmap(lambda x, i: x.at[i].set(-1)))(x, i)
    exact = numbers(4, 3)
    exact[np.arange(4), [0, 1, 2, 0]] = -1
    return Observed({"spec": format_spec(out), "value": out}, {"spec": "['x']", "value": exact})


PARTS_GIVEN_COMPLEX_DTYPE = deviation(
    "jax<0.7",
    error="ValueError",
    match="stablehlo.complex",
    reason="lowering gave the parts the sharding of the result, and with it its dtype",
    issue="jax-ml/jax#29818",
)


@probe(
    source="jax-ml/jax#29818",
    releases="jax>=0.6.1",
    deviations=[PARTS_GIVEN_COMPLEX_DTYPE],
)
def complex_number_of_two_parts(env):
    """`lax.complex(x, y)` under an explicit mesh makes an invalid module up to 0.6.2."""
    with env.compat.set_mesh(make_two_device_mesh(env)):
        z = jax.jit(lax.complex)(jnp.asarray(numbers(8)), -numbers(8))
    return Observed(z, (1 - 1j) * numbers(8).astype(np.complex64))


OPERAND_LACKED_LANE_AXIS = deviation(
    "jax<0.7",
    error="ShardingTypeError",
    match="select `which` must be scalar or have the same sharding",
    reason="an operand that is not mapped over was broadcast without the mesh axis of the lanes",
    issue="jax-ml/jax#29637",
)


@probe(
    source="jax-ml/jax#29637",
    releases="jax>=0.6.1",
    deviations=[OPERAND_LACKED_LANE_AXIS],
)
def switch_in_sharded_lanes(env):
    """`vmap` of a switch, lanes over x, runs with branches that use a shared and a drawn number."""

    def lane(key, shared, index):
        draw = lambda i: jax.random.uniform(key, ()) * 0 + i  # noqa: E731 - short
        return lax.switch(index, [lambda i: shared + i, draw, lambda i: i - shared], index)

    mesh = make_two_device_mesh(env)
    with env.compat.set_mesh(mesh):
        lanes = jax.jit(jax.vmap(lane, in_axes=(None, None, 0)))
        key, index = jax.random.key(0), put(mesh, np.array([0, 1, 2, 0], np.int32), "x")
        out = lanes(key, jnp.float32(10), index)
    exact = np.array([10, 1, -8, 10], np.float32)
    return Observed({"spec": format_spec(out), "value": out}, {"spec": "['x']", "value": exact})


TRAILING_ONES_MISREAD = deviation(
    "jax<0.7",
    error="AssertionError",
    reason="the new rule of reshape counted trailing ones as parts of the split dimension",
    issue="jax-ml/jax#29859",
)


@probe(source="jax-ml/jax#29859", releases="jax>=0.6", deviations=[TRAILING_ONES_MISREAD])
def reshape_with_ones_at_the_end(env):
    """Rows over x that are split or merged next to axes of size 1 stay in rows.

    0.6 raised a bare AssertionError.
    """
    mesh = make_two_device_mesh(env)
    new_shapes = {(12, 1): (2, 6, 1), (12, 1, 1): (2, 6, 1, 1), (2, 6, 1): (12, 1)}
    with env.compat.set_mesh(mesh):
        results = [
            jax.jit(lambda x, to=to: x.reshape(to))(put(mesh, numbers(*shape), "x"))
            for shape, to in new_shapes.items()
        ]
    return Observed(
        [(x.shape, format_spec(x)) for x in results], [(to, "['x']") for to in new_shapes.values()]
    )


GRADIENT_LOST_MESH_AXIS = deviation(
    "jax<0.8.2",
    outcome="ok",
    reason="a dimension of length 1 counted as broadcast, so the gradient lost its mesh axis",
    issue="jax-ml/jax#35181",
)
LOST_MESH_AXIS_DETECTED = deviation(
    "jax>=0.8.2,<0.9.1",
    error="ValueError",
    match="expected cotangent type",
    reason="the gradient lost its mesh axis as before, and JAX detects it",
    issue="jax-ml/jax#35181",
)


@probe(
    source="jax-ml/jax#35181",
    devices=1,
    releases="jax>=0.6.1",
    deviations=[GRADIENT_LOST_MESH_AXIS, LOST_MESH_AXIS_DETECTED],
)
def gradient_by_an_axis_of_one(env):
    """The gradient through `expand_dims` of a vector over a mesh of one device is sharded like it.

    This is how code for many devices is tried on one device.
    """
    mesh = env.mesh(1, "x", explicit=True)
    with env.compat.set_mesh(mesh):
        gradient = jax.jit(jax.grad(lambda x: jnp.expand_dims(x, -1).sum()))
        return Observed(format_spec(gradient(put(mesh, numbers(1), "x"))), "['x']")


NO_RULE_FOR_CONVOLUTION = deviation(
    "jax<0.6.1",
    error="ShardingTypeError",
    match="conv_general_dilated is not implemented",
    reason="convolutions had no sharding rule, and windows had to be trivial along sharded axes",
    issue="jax-ml/jax#28090",
)


@probe(
    source="jax-ml/jax#28090", devices=4, releases="jax>=0.6", deviations=[NO_RULE_FOR_CONVOLUTION]
)
def windows_along_a_sharded_axis(env):
    """A convolution and a pooling along an axis over y exchange halos, and keep that sharding."""
    mesh = env.mesh((2, 2), ("x", "y"), explicit=True)

    def f(x):
        dims = ("NWC", "WIO", "NWC")
        convolved = lax.conv_general_dilated(
            x, np.ones((3, 1, 1), np.float32), (1,), "SAME", dimension_numbers=dims
        )
        return convolved, lax.reduce_window(
            convolved, -np.inf, lax.max, (1, 2, 1), (1, 2, 1), "SAME"
        )

    x = numbers(2, 8, 1)
    with env.compat.set_mesh(mesh):
        convolved, pooled = jax.jit(f)(put(mesh, x, "x", "y"))
    padded = np.pad(x, ((0, 0), (1, 1), (0, 0)))
    exact = padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]
    return Observed(
        {"specs": [format_spec(convolved), format_spec(pooled)], "values": [convolved, pooled]},
        {
            "specs": ["['x', 'y']"] * 2,
            "values": [exact, np.maximum(exact[:, ::2], exact[:, 1::2])],
        },
    )


MANUAL_AXES_INSIDE = deviation(
    "jax<0.6.2",
    error="ValueError",
    match="context mesh .* should match the aval mesh",
    reason="the array has a type on the explicit mesh, but its axes are manual inside shard_map",
    issue="jax-ml/jax#29162",
)
CLOSURE_NOT_IMPLEMENTED = deviation(
    "jax>=0.6.2",
    error="NotImplementedError",
    match="Closing over inputs to shard_map",
    reason="not implemented, as the error states",
    issue="jax-ml/jax#29162",
)


@probe(
    source="jax-ml/jax#29162",
    releases="jax>=0.6",
    deviations=[MANUAL_AXES_INSIDE, CLOSURE_NOT_IMPLEMENTED],
)
def closed_over_by_shard_map(env):
    """A function in shard_map cannot close over an array on Explicit axes.

    Pass the array as an argument.
    """
    mesh = make_two_device_mesh(env)
    w, x = put(mesh, numbers(2), "x"), put(mesh, numbers(4), "x")
    with env.compat.set_mesh(mesh):
        f = env.compat.shard_map(
            lambda x: x * w.sum(), mesh=mesh, in_specs=P("x"), out_specs=P("x")
        )
        return Observed(jax.jit(f)(x), numbers(4))


SLICES_PUT_ON_MESH = deviation(
    "jax==0.5.0",
    error="XlaRuntimeError",
    match="expects an array with exactly one shard",
    reason="slices of an array on one device were put on the mesh in use, each in several shards",
    issue="jax-ml/jax#26552",
)


@probe(source="jax-ml/jax#26552", deviations=[SLICES_PUT_ON_MESH])
def put_under_a_mesh(env):
    """`device_put` of a jax array under a mesh, to shards of the mesh, fails only in 0.5.0."""
    mesh = env.mesh(DEVICES, "x")
    with env.compat.set_mesh(mesh):
        x = jax.device_put(jnp.asarray(numbers(8)), NamedSharding(mesh, P("x")))
    return Observed((format_spec(x), x), ("['x']", numbers(8)))


UNCONSTRAINED_REFUSED = deviation(
    "jax>=0.10.1",
    error="ValueError",
    match="Unconstrained dims are not allowed when passed to out_shardings",
    reason="no longer accepted: leave the result out, or constrain it within the function",
    issue="jax-ml/jax#37047",
)


@probe(source="jax-ml/jax#37047", deviations=[UNCONSTRAINED_REFUSED])
def results_left_to_the_compiler(env):
    """`P.UNCONSTRAINED` in `out_shardings` leaves an axis to the compiler.

    It is refused from 0.10.1.
    """
    mesh = env.mesh(DEVICES, "x")
    free = NamedSharding(mesh, P(P.UNCONSTRAINED))
    return Observed(jax.jit(lambda x: 2 * x, out_shardings=free)(numbers(8)), 2 * numbers(8))


SHARDED_INDICES_ACCEPTED = deviation(
    "jax>=0.7,<0.8",
    outcome="ok",
    reason="accepted, although its gradient, a scatter-add, hides an all-reduce",
    issue="jax-ml/jax#31795",
)


@probe(source="jax-ml/jax#31795", releases="jax>=0.6", deviations=[SHARDED_INDICES_ACCEPTED])
def rows_by_sharded_indices(env):
    """`x[i]`, x unsharded and i over x, requires the sharding of its result, except in 0.7."""
    mesh = make_two_device_mesh(env)
    with env.compat.set_mesh(mesh):
        x, i = put(mesh, numbers(4, 2)), put(mesh, np.array([0, 2]), "x")
        outcome = ending(jax.jit(lambda x, i: x[i]), x, i, words=(".get(out_sharding=)",))
    return Observed(outcome, "ShardingTypeError: .get(out_sharding=)")


RESIDUALS_ON_AUTO_MESH = deviation(
    "jax<0.8.1",
    error="ValueError",
    match="should match the mesh of sharding",
    reason="the array for the residuals of the scan was on the mesh of auto_axes",
    issue="jax-ml/jax#33029",
)


@probe(source="jax-ml/jax#33029", releases="jax>=0.7", deviations=[RESIDUALS_ON_AUTO_MESH])
def gradient_through_automatic_steps(env):
    """The gradient of a scan whose steps drop into `auto_axes` is refused up to 0.8.0."""
    with env.compat.set_mesh(make_two_device_mesh(env)):

        def f(w, x):
            step = jax.sharding.auto_axes(lambda x: w * x, out_sharding=P())
            return lax.scan(lambda c, _: (step(c), None), x, None, length=3)[0]

        return Observed(jax.jit(jax.grad(f))(2.0, 2.0), np.float64(24))


TYPE_KEPT_ITS_MESH = deviation(
    "jax>=0.6,<0.7.2",
    params=["sharding"],
    error="ValueError",
    match="Length of device assignment 1 is not equal to the size of the mesh 2",
    reason="the type kept the mesh that the array was put away from",
    issue="jax-ml/jax#31793",
)
TYPE_KEEPS_ITS_MESH = deviation(
    "jax>=0.6",
    params=["device", "to_device"],
    error="ValueError",
    match="Length of device assignment 1 is not equal to the size of the mesh 2",
    reason="the type keeps the mesh that the array was put away from",
    issue="jax-ml/jax#31793",
)
ON_ONE_DEVICE = {
    "device": jax.device_put,
    "to_device": lambda x, device: x.to_device(device),
    "sharding": lambda x, device: jax.device_put(x, SingleDeviceSharding(device)),
}


@probe(
    source="jax-ml/jax#31793",
    releases="jax>=0.5.3",
    params=[*ON_ONE_DEVICE],
    deviations=[TYPE_KEPT_ITS_MESH, TYPE_KEEPS_ITS_MESH],
)
def put_from_a_mesh_on_one_device(env, name):
    """An array that is put from an Explicit mesh on one device is an argument of jit there."""
    x = jax.device_put(numbers(8), NamedSharding(make_two_device_mesh(env), P("x")))
    y = ON_ONE_DEVICE[name](x, env.devices[0])
    return Observed(jax.jit(lambda y: 2 * y)(y), reference=2 * numbers(8))


NAMES_NO_AXIS = deviation(
    "jax<0.7",
    outcome="ok",
    reason="for a program on one device, the sharding of the result was made without its spec",
    issue="jax-ml/jax@5ab714bdaeac",
)


@probe(source="jax-ml/jax@5ab714bdaeac", releases="jax>=0.6", deviations=[NAMES_NO_AXIS])
def sharded_on_a_mesh_of_one_device(env):
    """On an Explicit mesh of one device, `out_sharding=P("x")` appears in the result's spec."""
    with env.compat.set_mesh(env.mesh(1, "x", explicit=True)):
        out = jnp.asarray(numbers(8)).at[np.array([3, 1])].get(out_sharding=P("x"))
    expected = {"spec": "['x']", "value": np.float32([3, 1])}
    return Observed({"spec": format_spec(out), "value": out}, expected)


KEYS_GATHERED = deviation(
    "jax<0.6",
    outcome="ok",
    reason="the new words were made of unsharded arrays",
    issue="jax-ml/jax@289fa625e562",
)


@probe(source="jax-ml/jax@289fa625e562", releases="jax>=0.5.3", deviations=[KEYS_GATHERED])
def number_folded_into_sharded_keys(env):
    """`vmap` of `jax.random.fold_in` over sharded keys keeps the keys sharded."""
    mesh = make_two_device_mesh(env)
    with env.compat.set_mesh(mesh):
        keys = put(mesh, jax.random.split(jax.random.key(0), 4), "x")
        out = jax.jit(jax.vmap(lambda key: jax.random.fold_in(key, 1)))(keys)
    return Observed(format_spec(out), "['x']")


LANES = {
    "where": lambda a, at: jnp.where(at > 0, a, 0),
    "read": lambda a, at: a.at[at].get(out_sharding=P()),
}
SELECT_REFUSED = deviation(
    "jax<0.6.1",
    outcome="raised",
    match="select (cases|`which`) must",
    reason="the batching rule of select did not know the axis of the lanes",
    issue="jax-ml/jax@7de522c5a344",
)


@probe(
    source="jax-ml/jax@7de522c5a344",
    releases="jax>=0.5.3",
    params=[*LANES],
    deviations=[SELECT_REFUSED],
)
def choices_in_lanes(env, name):
    """`vmap` over a sharded axis of `jnp.where` with a number, or of `x.at[i].get()`, runs."""
    mesh, a, at = make_two_device_mesh(env), numbers(4, 2), np.array([[0, 1]] * 4)
    with env.compat.set_mesh(mesh):
        out = jax.jit(jax.vmap(LANES[name]))(put(mesh, a, "x"), put(mesh, at, "x"))
    value = np.where(at > 0, a, 0) if name == "where" else a
    return Observed({"spec": format_spec(out), "value": out}, {"spec": "['x']", "value": value})


SAMPLERS = {
    "beta": lambda key, **where: jax.random.beta(key, 1.5, 0.5, (4,), **where),
    "categorical": lambda key, **where: jax.random.categorical(key, np.zeros((4, 3)), **where),
    "dirichlet": lambda key, **where: jax.random.dirichlet(key, np.ones(3), (4,), **where),
    "gamma": lambda key, **where: jax.random.gamma(key, 1.5, (4,), **where),
    "loggamma": lambda key, **where: jax.random.loggamma(key, 1.5, (4,), **where),
    "orthogonal": lambda key, **where: jax.random.orthogonal(key, 2, (4,), **where),
    "t": lambda key, **where: jax.random.t(key, 2.5, (4,), **where),
}
NO_OUT_SHARDING = deviation(
    "jax<0.10.1",
    error="TypeError",
    match="out_sharding",
    reason="of the samplers, only a few took out_sharding",
    issue="jax-ml/jax#37153",
)


@probe(
    source="jax-ml/jax#37153",
    releases="jax>=0.7.2",
    params=[*SAMPLERS],
    deviations=[NO_OUT_SHARDING],
)
def sharded_draw(env, name):
    """A sampler with `out_sharding` draws the same numbers, sharded."""
    key = jax.random.key(0)
    plain = np.asarray(SAMPLERS[name](key))
    with env.compat.set_mesh(make_two_device_mesh(env)):
        out = SAMPLERS[name](key, out_sharding=P("x"))
    return Observed({"spec": format_spec(out), "value": out}, {"spec": "['x']", "value": plain})


ONE_DEVICE_IS_A_SHARDING = deviation(
    "jax>=0.6.1,<0.7",
    error="AssertionError",
    match="PartitionSpec",
    reason="an axis of size 1 counted as replicated, so the spec was only shortened",
    issue="jax-ml/jax@ab8720c2eaa7",
)


@probe(
    source="jax-ml/jax@ab8720c2eaa7",
    releases="jax>=0.5.3",
    deviations=[ONE_DEVICE_IS_A_SHARDING],
)
def merged_beside_an_axis_of_size_1(env):
    """A reshape merges two dimensions before one that is sharded over a mesh axis of size 1."""
    mesh, a = env.mesh((1, 2), ("x", "y"), explicit=True), numbers(2, 2, 2)
    with env.compat.set_mesh(mesh):
        out = jnp.reshape(put(mesh, a, None, None, "x"), (-1, 2))
    return Observed((format_spec(out), out), ("[None, 'x']", a.reshape(4, 2)))


WEIGHT_REFUSED = deviation(
    "jax<0.10.1",
    error="ShardingTypeError",
    match="Contracting dimensions are sharded",
    reason="the gradient of a weight without a mesh had no rule",
    issue="jax-ml/jax@d7f3b8f85e9a",
)


@probe(source="jax-ml/jax@d7f3b8f85e9a", releases="jax>=0.7", deviations=[WEIGHT_REFUSED])
def gradient_of_a_weight_without_a_mesh(env):
    """A weight made before `set_mesh` has a gradient, which is replicated, from 0.10.1 on."""
    mesh, w, x = make_two_device_mesh(env), jnp.asarray(numbers(2, 2)), numbers(4, 2)
    with env.compat.set_mesh(mesh):
        out = jax.jit(jax.grad(lambda w, x: lax.dot(x, w).sum()))(w, put(mesh, x, "x"))
    return Observed((format_spec(out), out), ("[]", np.float32([[12, 12], [16, 16]])))


def make_mesh_of_two_types(env, *names):
    """Return a mesh with axes `x` and `y`, of sizes 1 and 2, of types with these names."""
    types = tuple(getattr(jax.sharding.AxisType, name) for name in names)
    return Mesh(np.array(env.devices).reshape(1, 2), ("x", "y"), axis_types=types)


SPEC_SHORTER_THAN_ITS_SHAPE = deviation(
    "jax<0.6.1",
    error="ValueError",
    match="Length of sharding.spec must be equal",
    reason="specs were completed only if all axes were of one type",
    issue="jax-ml/jax@06ad3528e96e",
)


@probe(
    source="jax-ml/jax@06ad3528e96e",
    releases="jax>=0.5.3",
    deviations=[SPEC_SHORTER_THAN_ITS_SHAPE],
)
def iota_on_a_mesh_of_two_types(env):
    """`lax.broadcasted_iota` takes a spec shorter than its shape on Explicit and Auto axes."""
    mesh = make_mesh_of_two_types(env, "Auto", "Explicit")
    rows = NamedSharding(mesh, P("y"))
    with env.compat.set_mesh(mesh):
        out = jax.jit(lambda: lax.broadcasted_iota(np.int32, (4, 2), 0, out_sharding=rows))()
    return Observed((format_spec(out), out), ("['y']", np.int32([[0, 0], [1, 1], [2, 2], [3, 3]])))


NAME_REFUSED = deviation(
    "jax<0.7",
    error="AssertionError",
    reason="the batching rule of reshard refused the name",
    issue="jax-ml/jax@f926b3cf0bde",
)


@probe(
    source="jax-ml/jax@f926b3cf0bde",
    devices=4,
    releases="jax>=0.6.1",
    deviations=[NAME_REFUSED],
)
def reshard_in_lanes_with_a_name(env):
    """`vmap` with `spmd_axis_name` of a function that reshards on Explicit axes runs."""
    mesh, a = env.mesh((2, 2), ("x", "y")), numbers(2, 4)
    axes = getattr(jax.sharding, "explicit_axes", None)
    axes = axes or importlib.import_module("jax.experimental.shard").explicit_axes
    square = axes(lambda a, b: reshard(a, P()) * b, in_sharding=(P("y"), P("y")))
    with env.compat.set_mesh(mesh):
        x = put(mesh, a)
        out = jax.jit(jax.vmap(square, spmd_axis_name="x"))(x, x)
    return Observed((format_spec(out), out), ("[None, 'y']", a * a))


AXIS_OF_SIZE_1_LOST = deviation(
    "jax<0.10.1",
    outcome="ok",
    reason="the sharding that XLA reports has no axes of size 1",
    issue="jax-ml/jax@8677c149eafd",
)


@probe(source="jax-ml/jax@8677c149eafd", releases="jax>=0.5.3", deviations=[AXIS_OF_SIZE_1_LOST])
def sharded_over_an_explicit_axis_of_size_1(env):
    """A jitted function keeps an Explicit axis of size 1 in the spec, beside an Auto axis."""
    mesh = make_mesh_of_two_types(env, "Explicit", "Auto")
    with env.compat.set_mesh(mesh):
        out = jax.jit(lambda a: 2 * a)(put(mesh, numbers(2, 2), "x"))
    observed = {"array": format_spec(out), "type": format_spec(jax.typeof(out))}
    return Observed(observed, {"array": "['x']", "type": "['x']"})


WITHIN_A_MAP = {
    "index": lambda x: x[jnp.array([1, 0])],
    "get": lambda x: x.at[jnp.array([1, 0])].get(out_sharding=P(None, "y")),
}
AXIS_OF_THE_MAP_REFUSED = deviation(
    "jax<0.7",
    outcome="raised",
    match="Going from `Manual` AxisType to|out_sharding",
    reason="the read left the types of all axes, also of that of the map",
    issue="jax-ml/jax@5ad539c3f51a",
)


@probe(
    source="jax-ml/jax@5ad539c3f51a",
    devices=4,
    releases="jax>=0.6.1",
    params=[*WITHIN_A_MAP],
    deviations=[AXIS_OF_THE_MAP_REFUSED],
)
def rows_read_in_a_map_over_one_axis(env, name):
    """In a shard_map over one Explicit axis of two, rows are read by an array of indices."""
    mesh, a = env.mesh((2, 2), ("x", "y"), explicit=True), numbers(4, 2)
    with env.compat.set_mesh(mesh):
        f = env.compat.shard_map(
            WITHIN_A_MAP[name], mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names=["x"]
        )
        out = jax.jit(f)(put(mesh, a, "x", "y"))
    return Observed((format_spec(out), out), ("['x', 'y']", a[[1, 0, 3, 2]]))


WITH_ONES = {
    "stack": (lambda n, a: n.stack([a, n.ones((4, 2), "f")]), "[None, 'x']"),
    "concatenate": (lambda n, a: n.concatenate([a, n.ones((4, 2), "f")], axis=1), "['x']"),
    "polyval": (lambda n, a: n.polyval(n.ones(3, "f"), a), "['x']"),
}
ONES_ARE_REPLICATED = deviation(
    "jax>=0.8.2",
    params=["stack", "concatenate"],
    error="ShardingTypeError",
    reason="arrays that are made under jit have the mesh of the context, and are replicated on it",
    issue="jax-ml/jax@e45f9d97c35d",
)
COEFFICIENTS_ARE_REPLICATED = deviation(
    "jax>=0.8.2,<0.12",
    params=["polyval"],
    error="TypeError",
    match="equal types",
    reason="the loop started from zeros that are replicated on the mesh of the context",
    issue="jax-ml/jax@e45f9d97c35d",
)


@probe(
    source="jax-ml/jax@e45f9d97c35d",
    releases="jax>=0.5.3",
    params=[*WITH_ONES],
    deviations=[ONES_ARE_REPLICATED, COEFFICIENTS_ARE_REPLICATED],
)
def joined_with_ones(env, name):
    """Under jit, a sharded array and ones of its shape are joined; from 0.8.2 on, it is refused."""
    (f, spec), mesh, a = WITH_ONES[name], make_two_device_mesh(env), numbers(4, 2)
    with env.compat.set_mesh(mesh):
        out = jax.jit(lambda a: f(jnp, a))(put(mesh, a, "x"))
    return Observed((format_spec(out), out), (spec, f(np, a)))


REVERSED_BY_INDEX = deviation(
    "jax>=0.7,<0.12",
    outcome="ok",
    reason="Python asked for one element after another, whose sharding is ambiguous",
    issue="jax-ml/jax@4119d5365ada",
)


@probe(source="jax-ml/jax@4119d5365ada", releases="jax>=0.5.3", deviations=[REVERSED_BY_INDEX])
def read_forwards_and_backwards(env):
    """`reversed(x)` of a sharded array gives its elements, as a loop over it does.

    From 0.7.0 to 0.11.2 it was a ShardingTypeError on Explicit axes.
    """
    mesh, a = make_two_device_mesh(env), numbers(4)
    x = put(mesh, a, "x")
    outcomes = {
        "loop": ending(lambda: [float(v) for v in x]),
        "reversed": ending(lambda: [float(v) for v in reversed(x)]),
    }
    return Observed(outcomes, {"loop": "accepted", "reversed": "accepted"})
