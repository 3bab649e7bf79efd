"""Functions of the rows of a matrix whose type names a mesh axis.

This is so on Explicit axes, the default of `jax.make_mesh` from 0.9.0 on, and in shard_map with its
check. No row needs another one, so nothing has to be communicated, and each function should be
accepted. Many refusals have a small cause, such as a constant or a start value that is not typed
with the axis. Functions are lowered and never compiled.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, probe

defaults(devices=4, platforms=("cpu",))

ROWS, COLUMNS = 8, 4
SHAPE = ROWS, COLUMNS
KEY = np.array([0, 7], np.uint32)
TABLE = np.linspace(0, 1, 5, dtype=np.float32)
WEIGHTS = np.ones((COLUMNS, 3), np.float32)
EVERY_SECOND = np.array([True, False, True, False])


def functions_of(module, names, **options):
    """Return functions of a module by name, with options; looked up when they are called."""
    return {
        name: lambda x, name=name: getattr(module, name)(x, **options) for name in names.split()
    }


def outer(x):
    """Return the outer product of each row with itself."""
    return jnp.einsum("ij,ik->ijk", x, x)


def definite(x):
    """Return a positive definite matrix for each row."""
    return outer(x) + np.eye(COLUMNS, dtype=np.float32)


def slopes(fn):
    """Return the function that computes the gradient of the sum of the squares of a result."""
    return jax.grad(lambda x: (fn(x) ** 2).sum())


def by_row(fn):
    """Return the function under vmap over rows."""
    return jax.vmap(fn)


ELEMENTWISE = functions_of(
    jnp,
    "abs negative exp exp2 expm1 log log1p log2 log10 sqrt cbrt square sin cos tan arcsin arctan "
    "sinh tanh arcsinh floor ceil rint trunc sign signbit reciprocal isnan isfinite nan_to_num "
    "deg2rad sinc i0 spacing real conj angle positive fabs zeros_like ones_like",
) | {
    "clip": lambda x: jnp.clip(x, 0.2, 0.7),
    "where": lambda x: jnp.where(x > 0.5, x, 0),
    "maximum": lambda x: jnp.maximum(x, 0.5),
    "hypot": lambda x: jnp.hypot(x, x),
    "arctan2": lambda x: jnp.arctan2(x, 1.0),
    "power": lambda x: jnp.power(x, 2.5),
    "integer_power": lambda x: x**3,
    "float_power": lambda x: jnp.float_power(x, 2),
    "mod": lambda x: jnp.mod(x, 0.3),
    "divmod": lambda x: jnp.divmod(x, 0.3)[0],
    "frexp": lambda x: jnp.frexp(x)[0],
    "ldexp": lambda x: jnp.ldexp(x, 2),
    "modf": lambda x: jnp.modf(x * 3)[0],
    "heaviside": lambda x: jnp.heaviside(x - 0.5, 0.5),
    "nextafter": lambda x: jnp.nextafter(x, 1.0),
    "copysign": lambda x: jnp.copysign(x, -1.0),
    "logaddexp": lambda x: jnp.logaddexp(x, 1.0),
    "isclose": lambda x: jnp.isclose(x, 0.5),
    "select": lambda x: jnp.select([x < 0.3, x < 0.6], [x, 2 * x], 0.0),
    "polyval": lambda x: jnp.polyval(TABLE, x),
    "astype": lambda x: x.astype(jnp.bfloat16),
    "bitcast": lambda x: lax.bitcast_convert_type(x, jnp.int32),
    "shift": lambda x: (x * 100).astype("int32") >> 1,
    "population_count": lambda x: lax.population_count((x * 100).astype("uint32")),
    "add_to_columns": lambda x: x + jnp.arange(4.0),
    "add_to_rows": lambda x: x + jnp.arange(8.0)[:, None],
    "callback": lambda x: jax.pure_callback(np.sin, jax.ShapeDtypeStruct(SHAPE, x.dtype), x),
}
REDUCTIONS = functions_of(
    jnp,
    "sum prod mean std var max min median nanmedian argmax argmin any all count_nonzero nansum "
    "nanmean nanstd nanmax nanargmax ptp average",
    axis=1,
) | {
    "quantile": lambda x: jnp.quantile(x, 0.3, axis=1),
    "nanquantile": lambda x: jnp.nanquantile(x, 0.3, axis=1),
    "norm": lambda x: jnp.linalg.norm(x, axis=1),
    "logsumexp": lambda x: jax.nn.logsumexp(x, axis=1),
    "reduce": lambda x: lax.reduce(x, np.float32(0), lax.add, (1,)),
    "reduce_window": lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 2), (1, 2), "VALID"),
    "segment_sum": by_row(lambda row: jax.ops.segment_sum(row, np.array([0, 1, 0, 1]), 2)),
    "bincount": by_row(lambda row: jnp.bincount((row * 4).astype(int), length=4)),
    "histogram": by_row(lambda row: jnp.histogram(row, bins=4, range=(0.0, 1.0))[0]),
    "apply_along_axis": lambda x: jnp.apply_along_axis(jnp.sum, 1, x),
    "vectorize": jnp.vectorize(lambda row: row.sum(), signature="(n)->()"),
}
ALONG_THE_ROW = functions_of(
    jnp, "cumsum cumprod nancumsum sort argsort flip diff gradient trapezoid unwrap", axis=1
) | {
    "cummax": lambda x: lax.cummax(x, axis=1),
    "cumlogsumexp": lambda x: lax.cumlogsumexp(x, axis=1),
    "associative_scan": lambda x: lax.associative_scan(jnp.add, x, axis=1),
    "top_k": lambda x: lax.top_k(x, 2)[0],
    "partition": lambda x: jnp.partition(x, 1, axis=1),
    "argpartition": lambda x: jnp.argpartition(x, 1, axis=1),
    "sort_by_key": lambda x: lax.sort((x, x * 2), dimension=1, num_keys=1)[1],
    "lexsort": lambda x: jnp.lexsort((x, x), axis=1),
    "nonzero": by_row(lambda row: jnp.nonzero(row > 0.5, size=4)[0]),
    "unique": by_row(lambda row: jnp.unique(jnp.round(row, 1), size=4)),
    "convolve": by_row(lambda row: jnp.convolve(row, np.array([1, 2], np.float32), mode="same")),
    "conv": lambda x: lax.conv_general_dilated(
        x[:, None], np.ones((2, 1, 2), np.float32), (1,), "SAME"
    ),
    "fft": lambda x: jnp.fft.fft(x, axis=1),
    "irfft": lambda x: jnp.fft.irfft(x.astype("complex64"), axis=1),
    "fftshift": lambda x: jnp.fft.fftshift(x, axes=1),
    "roll": lambda x: jnp.roll(x, 1, axis=1),
    "packbits": lambda x: jnp.packbits(x > 0.5, axis=1),
    "unpackbits": lambda x: jnp.unpackbits((x * 200).astype("uint8"), axis=1),
    "map_coordinates": by_row(
        lambda row: jsp.ndimage.map_coordinates(row, [np.array([0.5, 1.5])], 1)
    ),
    "resize": by_row(lambda row: jax.image.resize(row, (8,), "linear")),
}
SHAPES = {
    "pad": lambda x: jnp.pad(x, ((0, 0), (1, 2))),
    "pad_edge": lambda x: jnp.pad(x, ((0, 0), (1, 2)), mode="edge"),
    "pad_reflect": lambda x: jnp.pad(x, ((0, 0), (1, 2)), mode="reflect"),
    "pad_wrap": lambda x: jnp.pad(x, ((0, 0), (1, 2)), mode="wrap"),
    "concatenate": lambda x: jnp.concatenate([x, x], axis=1),
    "append_zeros": lambda x: jnp.concatenate([x, jnp.zeros((ROWS, 1))], axis=1),
    "stack": lambda x: jnp.stack([x, x], axis=1),
    "hstack": lambda x: jnp.hstack([x, x]),
    "column_stack": lambda x: jnp.column_stack([x[:, 0], x[:, 1]]),
    "split": lambda x: jnp.split(x, 2, axis=1)[0],
    "array_split": lambda x: jnp.array_split(x, 3, axis=1)[0],
    "tile": lambda x: jnp.tile(x, (1, 2)),
    "repeat": lambda x: jnp.repeat(x, 2, axis=1),
    "repeat_by_counts": lambda x: jnp.repeat(
        x, np.array([1, 2, 0, 1]), axis=1, total_repeat_length=4
    ),
    "expand_dims": lambda x: x[:, None],
    "squeeze": lambda x: x[:, :1].squeeze(1),
    "reshape": lambda x: x.reshape(ROWS, 2, 2),
    "flatten_tail": lambda x: x.reshape(ROWS, 2, 2).reshape(SHAPE),
    "transpose_twice": lambda x: x.T.T,
    "moveaxis": lambda x: jnp.moveaxis(x[:, :, None], 2, 1),
    "broadcast_to": lambda x: jnp.broadcast_to(x[:, None], (ROWS, 3, COLUMNS)),
    "diagonal": lambda x: jnp.diagonal(outer(x), axis1=1, axis2=2),
    "trace": lambda x: jnp.trace(outer(x), axis1=1, axis2=2),
    "tril": lambda x: jnp.tril(outer(x)),
    "diag": by_row(jnp.diag),
    "full_like": lambda x: jnp.full_like(x, 2),
}
INDEXING = {
    "slice": lambda x: x[:, 1:3],
    "reversed": lambda x: x[:, ::-1],
    "column": lambda x: x[:, 2],
    "columns": lambda x: x[:, np.array([2, 1])],
    "mask": lambda x: x[:, EVERY_SECOND],
    "dynamic_slice": lambda x: lax.dynamic_slice_in_dim(x, 1, 2, axis=1),
    "dynamic_index": lambda x: lax.dynamic_index_in_dim(x, 1, axis=1),
    "dynamic_update": lambda x: lax.dynamic_update_slice_in_dim(x, x[:, :2], 1, axis=1),
    "take": lambda x: jnp.take(x, np.array([2, 0]), axis=1),
    "take_along_axis": lambda x: jnp.take_along_axis(x, jnp.argsort(x, axis=1), axis=1),
    "take_from_table": lambda x: jnp.take(TABLE, (x * 4).astype(int)),
    "searchsorted": lambda x: jnp.searchsorted(TABLE, x),
    "digitize": lambda x: jnp.digitize(x, TABLE),
    "interp": lambda x: jnp.interp(x, TABLE, TABLE),
    "isin": lambda x: jnp.isin(x, TABLE),
    "one_hot": lambda x: jax.nn.one_hot((x[:, 0] * 4).astype(int), 4),
    "set_column": lambda x: x.at[:, 1].set(0.0),
    "set_columns": lambda x: x.at[:, np.array([0, 2])].set(0.0),
    "set_slice": lambda x: x.at[:, 1:3].set(0.0),
    "add_to_column": lambda x: x.at[:, 1].add(1.0),
    "multiply_column": lambda x: x.at[:, 1].multiply(2.0),
    "set_one_in_each_row": lambda x: x.at[np.arange(ROWS), np.zeros(ROWS, int)].set(0.0),
    "insert": lambda x: jnp.insert(x, 1, 2.0, axis=1),
    "delete": lambda x: jnp.delete(x, 1, axis=1),
}
LINEAR_ALGEBRA = {
    "matmul": lambda x: x @ WEIGHTS,
    "einsum": lambda x: jnp.einsum("ij,jk->ik", x, WEIGHTS),
    "inner": lambda x: jnp.inner(x, WEIGHTS.T),
    "dot": lambda x: jnp.dot(x, TABLE[:4]),
    "vecdot": lambda x: jnp.vecdot(x, x),
    "tensordot": lambda x: jnp.tensordot(x, WEIGHTS, 1),
    "outer": outer,
    "cross": lambda x: jnp.cross(x[:, :3], TABLE[:3]),
    "matrix_power": lambda x: jnp.linalg.matrix_power(outer(x), 3),
    "cholesky": lambda x: jnp.linalg.cholesky(definite(x)),
    "inv": lambda x: jnp.linalg.inv(definite(x)),
    "det": lambda x: jnp.linalg.det(definite(x)),
    "slogdet": lambda x: jnp.linalg.slogdet(definite(x))[1],
    "solve": lambda x: jnp.linalg.solve(definite(x), x[..., None]),
    "solve_triangular": lambda x: jsp.linalg.solve_triangular(
        definite(x), x[..., None], lower=True
    ),
    "cho_solve": lambda x: jsp.linalg.cho_solve((definite(x), True), x[..., None]),
    "lstsq": by_row(lambda row: jnp.linalg.lstsq(jnp.outer(row, row), row)[0]),
    "eigvalsh": lambda x: jnp.linalg.eigvalsh(outer(x)),
    "eigh": lambda x: jnp.linalg.eigh(outer(x))[0],
    "svd": lambda x: jnp.linalg.svd(definite(x), compute_uv=False),
    "qr": lambda x: jnp.linalg.qr(definite(x), mode="r"),
    "pinv": lambda x: jnp.linalg.pinv(definite(x)),
    "expm": lambda x: jsp.linalg.expm(outer(x)),
    "attention": lambda x: jax.nn.dot_product_attention(*[x.reshape(ROWS, 2, 1, 2)] * 3),
}
CONTROL_FLOW = {
    "scan_over_columns": lambda x: lax.scan(lambda c, a: (c + a, c), x[:, 0], x.T)[0],
    "scan_from_zeros": lambda x: lax.scan(lambda c, a: (c + a, None), jnp.zeros(ROWS), x.T)[0],
    "scan_from_zeros_like": lambda x: lax.scan(
        lambda c, a: (c + a, None), jnp.zeros_like(x[:, 0]), x.T
    )[0],
    "fori_loop": lambda x: lax.fori_loop(0, 3, lambda _, c: c * 2, x),
    "while_loop": lambda x: lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2), (0, x)
    )[1],
    "cond": lambda x: lax.cond(x.sum() > 0, lambda: x, lambda: -x),
    "map_over_columns": lambda x: lax.map(lambda column: column * 2, x.T).T,
    "checkpoint": jax.checkpoint(jnp.sin),
    "vmap_of_cond": by_row(lambda row: lax.cond(row[0] > 0.5, lambda: row, lambda: -row)),
    "vmap_of_switch": by_row(
        lambda row: lax.switch((row[0] * 2).astype(int), [lambda: row, lambda: -row])
    ),
    "vmap_of_while": by_row(
        lambda row: lax.while_loop(lambda c: c.sum() < 5, lambda c: c * 2, row + 0.1)
    ),
    "vmap_of_fori": by_row(lambda row: lax.fori_loop(0, 3, lambda _, c: c * 2, row)),
    "vmap_of_scan": by_row(lambda row: lax.scan(lambda c, a: (c + a, c), 0.0, row)[1]),
    "vmap_of_index": by_row(lambda row: row[jnp.argmax(row)]),
    "vmap_of_update": by_row(lambda row: row.at[jnp.argmax(row)].set(0.0)),
    "vmap_of_dynamic_slice": by_row(lambda row: lax.dynamic_slice(row, (jnp.argmin(row),), (2,))),
}
ACTIVATIONS = functions_of(
    jax.nn,
    "celu elu gelu glu hard_sigmoid hard_swish hard_tanh leaky_relu log_sigmoid log_softmax mish "
    "relu relu6 selu sigmoid silu soft_sign softmax softplus sparse_plus squareplus standardize",
)
SPECIAL = functions_of(
    jsp.special,
    "digamma entr erf erfc exp1 expi factorial gamma gammaln gammasgn i0e i1 i1e log_ndtr logit "
    "ndtr spence",
) | {
    "erfinv": lambda x: jsp.special.erfinv(x / 2),
    "ndtri": lambda x: jsp.special.ndtri(x / 2 + 0.1),
    "betaln": lambda x: jsp.special.betaln(x + 1, 2.0),
    "beta": lambda x: jsp.special.beta(x + 1, 2.0),
    "betainc": lambda x: jsp.special.betainc(1.0, 2.0, x),
    "gammainc": lambda x: jsp.special.gammainc(1.0, x),
    "gammaincc": lambda x: jsp.special.gammaincc(1.0, x),
    "zeta": lambda x: jsp.special.zeta(x + 2, 1.0),
    "polygamma": lambda x: jsp.special.polygamma(1, x + 1),
    "multigammaln": lambda x: jsp.special.multigammaln(x + 3, 2),
    "xlogy": lambda x: jsp.special.xlogy(x, x),
    "kl_div": lambda x: jsp.special.kl_div(x, x + 1),
    "expn": lambda x: jsp.special.expn(2, x + 1),
    "hyp1f1": lambda x: jsp.special.hyp1f1(1.0, 2.0, x),
    "fresnel": lambda x: jsp.special.fresnel(x)[0],
    "bessel_jn": lambda x: jsp.special.bessel_jn(x[:, 0], v=2)[0],
    "norm_cdf": jsp.stats.norm.cdf,
    "norm_ppf": lambda x: jsp.stats.norm.ppf(x / 2 + 0.1),
    "beta_logpdf": lambda x: jsp.stats.beta.logpdf(x, 2.0, 2.0),
    "gamma_logpdf": lambda x: jsp.stats.gamma.logpdf(x, 2.0),
    "poisson_logpmf": lambda x: jsp.stats.poisson.logpmf(2, x),
    "t_logpdf": lambda x: jsp.stats.t.logpdf(x, 2.0),
}
RANDOM = {
    "normal": lambda x: x + jax.random.normal(KEY, SHAPE),
    "uniform_from": lambda x: jax.random.uniform(KEY, SHAPE, minval=x, maxval=2.0),
    "exponential": lambda x: x * jax.random.exponential(KEY, SHAPE),
    "gumbel": lambda x: x + jax.random.gumbel(KEY, SHAPE),
    "randint_to": lambda x: jax.random.randint(KEY, SHAPE, 0, (x * 9).astype(int) + 1),
    "bernoulli": lambda x: jax.random.bernoulli(KEY, x),
    "categorical": lambda x: jax.random.categorical(KEY, x),
    "gamma": lambda x: jax.random.gamma(KEY, x + 1),
    "beta": lambda x: jax.random.beta(KEY, x + 1, x + 1),
    "dirichlet": lambda x: jax.random.dirichlet(KEY, x + 1),
    "poisson": lambda x: jax.random.poisson(KEY, x),
    "binomial": lambda x: jax.random.binomial(KEY, 4.0, x),
    "chisquare": lambda x: jax.random.chisquare(KEY, x + 1),
    "t": lambda x: jax.random.t(KEY, x + 1, SHAPE),
    "truncated_normal": lambda x: jax.random.truncated_normal(KEY, x - 1, x + 1),
    "multivariate_normal": lambda x: jax.random.multivariate_normal(KEY, x, np.eye(COLUMNS)),
    "permutation": lambda x: jax.random.permutation(KEY, x, axis=1),
    "choice": lambda x: jax.random.choice(KEY, x, (2,), axis=1),
    "dropout": lambda x: jnp.where(jax.random.bernoulli(KEY, 0.9, SHAPE), x, 0),
    "by_row": by_row(lambda row: row + jax.random.uniform(KEY, row.shape)),
}
DERIVATIVES = (
    {
        name: slopes(group[name])
        for group, names in (
            (ACTIVATIONS, "relu softmax"),
            (ELEMENTWISE, "clip i0 sinc"),
            (REDUCTIONS, "logsumexp max median nanmedian norm prod quantile std"),
            (ALONG_THE_ROW, "cummax cumprod cumsum sort top_k"),
            (SHAPES, "pad_edge"),
            (INDEXING, "column interp set_column set_columns take_along_axis"),
            (LINEAR_ALGEBRA, "attention cholesky det eigh expm inv qr solve solve_triangular svd"),
            (CONTROL_FLOW, "checkpoint"),
            (SPECIAL, "betainc digamma erf erfc erfinv gammainc gammaln ndtr ndtri norm_cdf"),
        )
        for name in names.split()
    }
    | {
        name: slopes(fn)
        for name, fn in {
            "convolve": by_row(lambda row: jnp.convolve(row, TABLE[1:3])),
            "fft": lambda x: jnp.abs(jnp.fft.fft(x, axis=1)),
            "gelu": lambda x: jax.nn.gelu(x, approximate=False),
            "gelu_approximately": jax.nn.gelu,
            "logaddexp": lambda x: jnp.logaddexp(x, 0.5),
            "pad": lambda x: jnp.pad(x, ((0, 0), (1, 1))),
            "sample_of_gamma": RANDOM["gamma"],
            "sample_of_truncated_normal": RANDOM["truncated_normal"],
            "scan_over_columns": lambda x: lax.scan(lambda c, a: (c * a, None), x[:, 0], x.T)[0],
            "where": lambda x: jnp.where(x > 0.5, x * x, x),
        }.items()
    }
    | {
        "jvp": lambda x: jax.jvp(jnp.sin, (x,), (x,))[1],
        "vjp": lambda x: jax.vjp(jnp.sin, x)[1](x)[0],
        "linearize": lambda x: jax.linearize(jnp.sin, x)[1](x),
        "linear_transpose": lambda x: jax.linear_transpose(lambda a: a * 2, x)(x)[0],
        "grad_of_each_row": by_row(jax.grad(lambda row: (row**2).sum())),
        "hessian_of_each_row": by_row(jax.hessian(lambda row: (row**3).sum())),
        "jacfwd_of_each_row": by_row(jax.jacfwd(lambda row: row**2)),
        "jacrev_of_each_row": by_row(jax.jacrev(lambda row: row**2)),
    }
)
"""Functions of the other groups whose gradient has rules of its own, and transformations."""
GROUPS = {
    "elementwise": ELEMENTWISE,
    "reductions": REDUCTIONS,
    "along_the_row": ALONG_THE_ROW,
    "shapes": SHAPES,
    "indexing": INDEXING,
    "linear_algebra": LINEAR_ALGEBRA,
    "control_flow": CONTROL_FLOW,
    "derivatives": DERIVATIVES,
    "activations": ACTIVATIONS,
    "special_functions": SPECIAL,
    "random_numbers": RANDOM,
}


def attempt(fn, x):
    """Return the type of the result of a function, or the name of the type of its error."""
    jitted = jax.jit(fn)
    try:
        (aval,) = jax.make_jaxpr(jitted)(x).out_avals
        jitted.lower(x)
    except Exception as error:  # noqa: BLE001 - any refusal
        return type(error).__name__
    return aval


def describe_rows(aval):
    """Return whether the rows of a result are sharded, or the name of its error."""
    if isinstance(aval, str):
        return aval
    return "sharded" if aval.sharding.spec[:1] == ("x",) else "not sharded"


@probe(
    source="jax-ml/jax@32d830f9cf21",
    params=[*GROUPS],
    releases="jax>=0.6.1",
    records="what is refused is up to each release",
)
def on_an_explicit_axis(env, group):
    """Functions of rows that are sharded over an Explicit axis: accepted or refused.

    An accepted result should be sharded as its argument is.
    """
    mesh = env.mesh(4, "x", explicit=True)
    with env.compat.set_mesh(mesh):
        x = jax.device_put(np.ones(SHAPE, np.float32), NamedSharding(mesh, P("x")))
        return Observed({name: describe_rows(attempt(fn, x)) for name, fn in GROUPS[group].items()})


@probe(
    source="jax-ml/jax#29881",
    params=[*GROUPS],
    records="what is refused is up to each release",
)
def in_a_checked_shard_map(env, group):
    """Functions of the rows of each shard, in shard_map with its check: accepted or refused."""
    mesh, x = env.mesh(4, "x"), np.ones((4 * ROWS, COLUMNS), np.float32)

    def run(fn):
        mapped = env.compat.shard_map(fn, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
        found = attempt(mapped, x)
        return found if isinstance(found, str) else "accepted"

    return Observed({name: run(fn) for name, fn in GROUPS[group].items()})
