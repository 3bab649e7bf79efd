"""Activations, special functions, distributions, images, and random numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.fuzz.array_type import ArrayType
from conformance.fuzz.operation import (
    FLOAT,
    INTEGER,
    SINGLE,
    Operation,
    make_calls,
    make_operations,
)
from conformance.fuzz.operations.elementwise import draw_binary, draw_unary, draw_unary_call

if TYPE_CHECKING:
    from conformance.fuzz.scope import Scope

CONTINUOUS: Final = {
    "norm": "0.5, 2.0", "cauchy": "0.5, 2.0", "laplace": "0.5, 2.0", "logistic": "0.5, 2.0",
    "expon": "0.5, 2.0", "uniform": "-1.0, 3.0", "t": "3.0", "chi2": "3.0", "gamma": "2.5",
    "beta": "2.0, 3.0", "pareto": "2.0", "truncnorm": "-1.0, 2.0", "gennorm": "1.5",
    "vonmises": "1.5", "wrapcauchy": "0.3", "gumbel_r": "", "gumbel_l": "",
}  # fmt: skip
"""Continuous distributions of `jax.scipy.stats` and their parameters."""
DISCRETE: Final = {
    "poisson": "2.5", "bernoulli": "0.3", "geom": "0.3", "binom": "5, 0.3", "nbinom": "5, 0.3",
    "betabinom": "5, 2.0, 3.0",
}  # fmt: skip
"""Discrete distributions and their parameters."""
NORMAL: Final = ("norm", "truncnorm")
"""Distributions whose functions take no narrow floats."""
METHODS: Final = {
    "norm": "pdf logpdf cdf logcdf sf logsf ppf isf", "cauchy": "pdf logpdf cdf logcdf sf ppf",
    "laplace": "pdf logpdf cdf", "logistic": "pdf logpdf cdf sf ppf isf",
    "expon": "pdf logpdf cdf sf ppf", "uniform": "pdf logpdf cdf ppf", "t": "pdf logpdf",
    "chi2": "pdf logpdf cdf sf", "gamma": "pdf logpdf cdf sf logsf",
    "beta": "pdf logpdf cdf sf logcdf", "pareto": "pdf logpdf cdf sf ppf",
    "truncnorm": "pdf logpdf cdf logcdf sf", "gennorm": "pdf logpdf cdf", "vonmises": "pdf logpdf",
    "wrapcauchy": "pdf logpdf", "gumbel_r": "pdf logpdf cdf sf ppf", "gumbel_l": "pdf logpdf cdf",
    "poisson": "pmf logpmf cdf", "bernoulli": "pmf logpmf cdf ppf", "geom": "pmf logpmf",
    "binom": "pmf logpmf", "nbinom": "pmf logpmf", "betabinom": "pmf logpmf",
}  # fmt: skip
"""Methods of the distributions."""


def _make_distributions() -> tuple[Operation, ...]:
    made = []
    for name, parameters in (CONTINUOUS | DISCRETE).items():
        for method in METHODS[name].split():
            arguments = ", ".join(["{0}", *([parameters] if parameters else [])])
            made.append(
                Operation(
                    name=f"jax.scipy.stats.{name}.{method}", rule=draw_unary_call,
                    kinds=SINGLE if name in NORMAL else FLOAT,
                    call=f"jax.scipy.stats.{name}.{method}({arguments})",
                )
            )  # fmt: skip
    return tuple(made)


def draw_random(scope: Scope, operation: Operation) -> None:
    """Add random numbers with a constant key; `result` is their dtype, or `float`."""
    shape = scope.choose_shape(0, 2)
    dtype = operation.result
    if dtype == "float":
        dtype = scope.choose(["float32", "bfloat16", "float16"])
    seed = scope.integer(0, 9)
    key = scope.choose(["jax.random.key({0})", "jax.random.PRNGKey({0})",
                        'jax.random.key({0}, impl="rbg")'])  # fmt: skip
    code = operation.call.replace("KEY", key.replace("{0}", str(seed)))
    code = code.replace("SHAPE", str(shape)).replace("DTYPE", f'"{dtype}"')
    scope.add(operation.name, code, [], ArrayType(shape, dtype))


def draw_random_of(scope: Scope, operation: Operation) -> None:
    """Add a random function of an array."""
    x = scope.pick_kind(("float", "int"), smallest=1, largest=2, least=1)
    call = operation.call.replace("KEY", f"jax.random.key({scope.integer(0, 9)})")
    shape = x.type.shape[:-1] if operation.result == "last" else x.type.shape
    dtype = "int32" if operation.result == "last" else x.type.dtype
    if operation.result == "last" and x.type.kind != "float":
        return
    scope.add(operation.name, call, [x], ArrayType(shape, dtype))


def draw_key_function(scope: Scope, operation: Operation) -> None:
    """Add a function of keys, whose result is shown as numbers."""
    call = operation.call.replace("KEY", f"jax.random.key({scope.integer(0, 9)})")
    code = f"jax.random.key_data(jax.random.{call})"
    shape = tuple(int(extent) for extent in operation.result.split(","))
    scope.add(operation.name, code, [], ArrayType(shape, "uint32"))


def draw_one_hot(scope: Scope, operation: Operation) -> None:
    """Add a one-hot encoding, also of positions out of range."""
    x = scope.pick_kind(INTEGER, largest=2)
    classes = scope.choose([3, 1, 5])
    axis = scope.choose([-1, 0])
    shape = (*x.type.shape, classes) if axis else (classes, *x.type.shape)
    code = f'{operation.name}({{0}}, {classes}, dtype="float32", axis={axis})'
    scope.add(operation.name, code, [x], ArrayType(shape, "float32"))


def draw_resize(scope: Scope, operation: Operation) -> None:
    """Add a resized image."""
    x = scope.pick_kind(FLOAT, smallest=2, largest=2, least=2)
    method = scope.choose(["linear", "nearest", "cubic", "lanczos3"])
    shape = scope.choose([(4, 4), (3, 5), (2, 2)])
    more = scope.choose(["", ", antialias=False"])
    code = f'jax.image.resize({{0}}, {shape}, "{method}"{more})'
    scope.add(operation.name, code, [x], x.type.with_shape(*shape))


def draw_map_coordinates(scope: Scope, operation: Operation) -> None:
    """Add an interpolation at coordinates."""
    x = scope.pick_kind(FLOAT, smallest=1, largest=1, least=2)
    y = scope.pick(lambda type_: type_ == x.type, lambda: x.type)
    order = scope.choose([1, 0])
    mode = scope.choose(["constant", "nearest", "wrap", "mirror", "reflect"])
    code = f'jax.scipy.ndimage.map_coordinates({{0}}, [{{1}}], {order}, mode="{mode}")'
    scope.add(operation.name, code, [x, y], x.type)


def draw_attention(scope: Scope, operation: Operation) -> None:
    """Add an attention of a few positions and heads."""
    dtype = scope.choose(["float32", "bfloat16", "float16"])
    length, heads, width = (scope.choose([2, 3, 1]) for _ in range(3))
    wanted = ArrayType((1, length, heads, width), dtype)
    q, k, v = (scope.pick(lambda type_: type_ == wanted, lambda: wanted) for _ in range(3))
    more = scope.choose(["", ", is_causal=True", ", scale=0.5"])
    scope.add(operation.name, f"{operation.name}({{0}}, {{1}}, {{2}}{more})", [q, k, v], wanted)


FUNCTIONS: Final = (
    *make_operations(
        "jax.nn.relu jax.nn.relu6 jax.nn.sigmoid jax.nn.softplus jax.nn.soft_sign jax.nn.silu "
        "jax.nn.log_sigmoid jax.nn.leaky_relu jax.nn.hard_sigmoid jax.nn.hard_silu "
        "jax.nn.hard_tanh jax.nn.elu jax.nn.celu jax.nn.selu jax.nn.gelu jax.nn.squareplus "
        "jax.nn.mish jax.nn.sparse_plus jax.nn.sparse_sigmoid",
        draw_unary, FLOAT,
    ),
    *make_calls(
        ["jax.nn.gelu({0}, approximate=False)", "jax.nn.glu(jnp.stack([{0}, {0}], -1))[..., 0]"],
        draw_unary_call, FLOAT,
    ),
    *make_operations("jax.nn.one_hot", draw_one_hot),
    *make_operations("jax.nn.dot_product_attention", draw_attention),
    *make_operations(
        "jax.scipy.special.erf jax.scipy.special.erfc jax.scipy.special.erfinv "
        "jax.scipy.special.gammaln jax.scipy.special.gamma jax.scipy.special.digamma "
        "jax.scipy.special.i0 jax.scipy.special.i0e jax.scipy.special.i1 jax.scipy.special.i1e "
        "jax.scipy.special.expit jax.scipy.special.logit "
        "jax.scipy.special.entr "
        "jax.scipy.special.factorial jax.scipy.special.exp1 jax.scipy.special.expi "
        "jax.scipy.special.log_softmax jax.scipy.special.softmax",
        draw_unary, FLOAT,
    ),
    *make_operations(
        "jax.scipy.special.ndtr jax.scipy.special.ndtri jax.scipy.special.log_ndtr "
        "jax.scipy.special.spence",
        draw_unary, SINGLE,
    ),
    *make_operations(
        "jax.scipy.special.xlogy jax.scipy.special.xlog1py jax.scipy.special.rel_entr "
        "jax.scipy.special.kl_div jax.scipy.special.betaln jax.scipy.special.gammainc "
        "jax.scipy.special.gammaincc jax.scipy.special.zeta jax.scipy.special.beta "
        "jax.scipy.special.poch",
        draw_binary, FLOAT,
    ),
    *make_calls(
        ["jax.scipy.special.polygamma(1, {0})", "jax.scipy.special.multigammaln({0}, 2)",
         "jax.scipy.special.betainc(2.0, 3.0, {0})", "jax.scipy.special.hyp1f1(1.0, 2.0, {0})"],
        draw_unary_call, FLOAT,
    ),
    *_make_distributions(),
    *make_operations("jax.image.resize", draw_resize),
    *make_operations("jax.scipy.ndimage.map_coordinates", draw_map_coordinates),
    *(
        Operation(
            name=f"jax.random.{name}", rule=draw_random, result=result,
            call=f"jax.random.{name}({arguments})",
        )
        for name, arguments, result in (
            ("uniform", "KEY, SHAPE, DTYPE", "float"),
            ("uniform", "KEY, SHAPE, DTYPE, minval=-2.0, maxval=3.0", "float"),
            ("normal", "KEY, SHAPE, DTYPE", "float"),
            ("normal", "KEY, SHAPE, DTYPE", "complex64"),
            ("bits", "KEY, SHAPE, DTYPE", "uint32"),
            ("bits", "KEY, SHAPE, DTYPE", "uint8"),
            ("randint", "KEY, SHAPE, -5, 100, DTYPE", "int32"),
            ("randint", "KEY, SHAPE, 0, 7, DTYPE", "uint8"),
            ("bernoulli", "KEY, 0.3, SHAPE", "bool"),
            ("rademacher", "KEY, SHAPE, DTYPE", "int32"),
            ("exponential", "KEY, SHAPE, DTYPE", "float"),
            ("gumbel", "KEY, SHAPE, DTYPE", "float"),
            ("laplace", "KEY, SHAPE, DTYPE", "float"),
            ("logistic", "KEY, SHAPE, DTYPE", "float"),
            ("cauchy", "KEY, SHAPE, DTYPE", "float"),
            ("pareto", "KEY, 2.0, SHAPE, DTYPE", "float32"),
            ("beta", "KEY, 2.0, 3.0, SHAPE, DTYPE", "float32"),
            ("gamma", "KEY, 1.5, SHAPE, DTYPE", "float32"),
            ("loggamma", "KEY, 0.5, SHAPE, DTYPE", "float32"),
            ("poisson", "KEY, 3.0, SHAPE, DTYPE", "int32"),
            ("poisson", "KEY, 30.0, SHAPE, DTYPE", "int32"),
            ("t", "KEY, 3.0, SHAPE, DTYPE", "float32"),
            ("chisquare", "KEY, 3.0, SHAPE, DTYPE", "float32"),
            ("f", "KEY, 3.0, 4.0, SHAPE, DTYPE", "float32"),
            ("geometric", "KEY, 0.3, SHAPE, DTYPE", "int32"),
            ("binomial", "KEY, 10.0, 0.4, SHAPE, DTYPE", "float32"),
            ("truncated_normal", "KEY, -1.0, 2.0, SHAPE, DTYPE", "float"),
            ("maxwell", "KEY, SHAPE, DTYPE", "float32"),
            ("rayleigh", "KEY, 2.0, SHAPE, DTYPE", "float32"),
            ("wald", "KEY, 2.0, SHAPE, DTYPE", "float32"),
            ("weibull_min", "KEY, 1.5, 2.0, SHAPE, DTYPE", "float32"),
            ("triangular", "KEY, 0.0, 1.0, 3.0, SHAPE, DTYPE", "float32"),
            ("lognormal", "KEY, 0.5, SHAPE, DTYPE", "float"),
            ("double_sided_maxwell", "KEY, 0.0, 1.0, SHAPE, DTYPE", "float32"),
            ("generalized_normal", "KEY, 1.5, SHAPE, DTYPE", "float32"),
        )
    ),
    *(
        Operation(
            name=f"jax.random.{name}", rule=draw_random_of, result=result,
            call=f"jax.random.{name}({arguments})",
        )
        for name, arguments, result in (
            ("permutation", "KEY, {0}", "same"),
            ("permutation", "KEY, {0}, independent=True", "same"),
            ("choice", "KEY, {0}, {0}.shape[:1]", "same"),
            ("choice", "KEY, {0}, {0}.shape[:1], replace=False", "same"),
            ("categorical", "KEY, {0}", "last"),
        )
    ),
    *(
        Operation(name=name, rule=draw_key_function, call=call, result=result)
        for name, call, result in (
            ("jax.random.split", "split(KEY, 3)", "3,2"),
            ("jax.random.fold_in", "fold_in(KEY, 7)", "2"),
            ("jax.random.clone", "clone(KEY)", "2"),
        )
    ),
)  # fmt: skip
