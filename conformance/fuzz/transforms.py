"""The table of transforms around a program: jit, batching, differentiation, loops, sharding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.fuzz.array_type import ArrayType, has_inexact
from conformance.fuzz.program import Transform
from conformance.fuzz.sharding_transforms import (
    apply_export,
    apply_shard_map,
    apply_sharded_jit,
    make_mesh_frame,
    make_shard_map_frame,
)
from conformance.fuzz.transform import FORWARD, REVERSE, TransformFrame, TransformKind

if TYPE_CHECKING:
    from conformance.fuzz.scope import Scope
    from conformance.fuzz.transform import Apply, Types

MOST_JACOBIAN: Final = 256
"""Elements of a Jacobian."""
SCALAR: Final = (
    "def scalar(tree):",
    "    leaves = jax.tree.leaves(tree)",
    '    return sum(jnp.sum(jnp.real(leaf).astype("float32")) for leaf in leaves)',
)
"""A loss of which all inexact results are part."""


def _name(types: Types) -> tuple[list[str], list[str]]:
    """Return the names of parameters, and those of the inexact ones."""
    names = [f"a{number}" for number in range(len(types))]
    return names, [n for n, type_ in zip(names, types, strict=True) if has_inexact(type_)]


def _select_inexact(types: Types) -> Types:
    return tuple(type_ for type_ in types if has_inexact(type_))


def _apply_jit(_: Scope, __: TransformFrame, types: Types, results: Types) -> Transform:
    return Transform(name="jit", code="jax.jit({f})", twin="{f}", types=types, results=results)


def _apply_vmap(
    scope: Scope, frame: TransformFrame, types: Types, results: Types
) -> Transform | None:
    if not types:
        return None
    (axis_name, size), *_ = frame.axes.items()
    axes: list[int | None] = []
    outer: list[ArrayType] = []
    for number, type_ in enumerate(types):
        # At least one parameter is mapped.
        if number and scope.rarely(4):
            axes.append(None)
            outer.append(type_)
            continue
        axis = scope.integer(0, type_.rank)
        shape = (*type_.shape[:axis], size, *type_.shape[axis:])
        axes.append(axis - type_.rank - 1 if scope.flip() else axis)
        outer.append(type_.with_shape(*shape))
    out = scope.choose([0, -1])
    mapped = tuple(
        type_.with_shape(size, *type_.shape) if out == 0 else type_.with_shape(*type_.shape, size)
        for type_ in results
    )
    in_axes = f"({', '.join(map(str, axes))},)"
    code = f'jax.vmap({{f}}, in_axes={in_axes}, out_axes={out}, axis_name="{axis_name}")'
    twin = f"vmap({{f}}, {in_axes}, {out})"
    return Transform(name="vmap", code=code, twin=twin, types=tuple(outer), results=mapped)


def _make_vmap_frame(scope: Scope, number: int) -> TransformFrame:
    return TransformFrame(number=number, axes={f"i{number}": scope.choose([2, 3, 1])})


def _apply_grad(_: Scope, __: TransformFrame, types: Types, results: Types) -> Transform | None:
    numbers = tuple(number for number, type_ in enumerate(types) if has_inexact(type_))
    if not numbers or not results:
        return None
    argnums = numbers if len(numbers) > 1 else numbers[0]
    code = f"jax.grad(lambda *a: scalar({{f}}(*a)), argnums={argnums})"
    return Transform(
        name="grad", code=code, statements=SCALAR, types=types, results=_select_inexact(types)
    )


def _apply_hessian(_: Scope, __: TransformFrame, types: Types, results: Types) -> Transform | None:
    numbers = [number for number, type_ in enumerate(types) if type_.kind == "float"]
    if not numbers or not results:
        return None
    number = numbers[0]
    type_ = types[number]
    if type_.size**2 > MOST_JACOBIAN:
        return None
    code = f"jax.hessian(lambda *a: scalar({{f}}(*a)), argnums={number})"
    result = type_.with_shape(*type_.shape, *type_.shape)
    return Transform(name="hessian", code=code, statements=SCALAR, types=types, results=(result,))


def _make_jacobian(name: str) -> Apply:
    def apply(_: Scope, __: TransformFrame, types: Types, results: Types) -> Transform | None:
        numbers = [number for number, type_ in enumerate(types) if type_.kind == "float"]
        if not numbers or any(type_.kind != "float" for type_ in results):
            return None
        type_ = types[numbers[0]]
        made = tuple(result.with_shape(*result.shape, *type_.shape) for result in results)
        if sum(result.size for result in made) > MOST_JACOBIAN:
            return None
        code = f"jax.{name}({{f}}, argnums={numbers[0]})"
        return Transform(name=name, code=code, types=types, results=made)

    return apply


def _make_linear(name: str, code: str) -> Apply:
    """Return a transform of the inexact parameters.

    Args:
        name: Name of the transform.
        code: Its result, with `F` for the function of these parameters and `XS` for them.
    """

    def apply(_: Scope, __: TransformFrame, types: Types, results: Types) -> Transform | None:
        names, inexact = _name(types)
        if not inexact:
            return None
        some = ", ".join(inexact)
        function = f"lambda {some}: {{f}}({', '.join(names)})"
        text = code.replace("F", f"({function})").replace("XS", some)
        made = (*results, *results) if name == "jvp" else _select_inexact(types)
        # The result of one parameter is no tuple, like that of any other function here.
        text += "[0]" if name != "jvp" and len(inexact) == 1 else ""
        return Transform(
            name=name, code=f"lambda {', '.join(names)}: {text}", types=types, results=made
        )

    return apply


POLICIES: Final = (
    "everything_saveable", "nothing_saveable", "dots_saveable", "dots_with_no_batch_dims_saveable",
    "offload_dot_with_no_batch_dims('device', 'pinned_host')",
)  # fmt: skip
"""Names of checkpoint policies, or calls that make one."""
CHECKPOINTS: Final = (
    "", *(f", policy=jax.checkpoint_policies.{policy}" for policy in POLICIES),
    ", prevent_cse=False",
)  # fmt: skip
"""Options of `jax.checkpoint`, the simplest first."""


def _apply_checkpoint(scope: Scope, _: TransformFrame, types: Types, results: Types) -> Transform:
    code = f"jax.checkpoint({{f}}{scope.choose(CHECKPOINTS)})"
    return Transform(name="checkpoint", code=code, twin="{f}", types=types, results=results)


def _make_custom(name: str, rule: str) -> Apply:
    """Return a transform that gives a function a derivative of its own, equal to the right one."""

    def apply(_: Scope, frame: TransformFrame, types: Types, results: Types) -> Transform:
        own = f"custom{frame.number}"
        statements = (
            f"def make_{own}(f):",
            f"    {own} = jax.{name}(f)",
            f"    {own}.{rule}",
            f"    return {own}",
        )
        return Transform(
            name=name, code=f"make_{own}({{f}})", statements=statements, twin="{f}", types=types,
            results=results,
        )  # fmt: skip

    return apply


def _stack(types: Types, size: int) -> Types:
    return tuple(type_.with_shape(size, *type_.shape) for type_ in types)


def _make_map(name: str, code: str, types: Types, results: Types, size: int) -> Transform:
    """Return a transform that maps a function over the first axis of all parameters."""
    return Transform(
        name=name, code=code, twin=f"vmap({{f}}, {(0,) * len(types)}, 0)",
        types=_stack(types, size), results=_stack(results, size),
    )  # fmt: skip


def _apply_scan(scope: Scope, _: TransformFrame, types: Types, results: Types) -> Transform | None:
    if not types:
        return None
    size = scope.choose([2, 3, 1])
    options = scope.choose(["", ", unroll=2", ", reverse=True"])
    code = f"lambda *xs: lax.scan(lambda c, x: (c, {{f}}(*x)), None, xs{options})[1]"
    return _make_map("scan", code, types, results, size)


def _apply_carry_scan(
    scope: Scope, _: TransformFrame, types: Types, results: Types
) -> Transform | None:
    if not types or results != types[:1]:
        return None
    size = scope.choose([2, 3])
    rest = _stack(types[1:], size)
    code = (
        "lambda a, *xs: lax.scan(lambda c, x: ({f}(c, *x), c), a, xs, "
        f"length={size})"
    )  # fmt: skip
    return Transform(
        name="scan", code=code, types=(types[0], *rest), results=(*results, *_stack(results, size))
    )


def _make_loop(name: str, code: str) -> Apply:
    def apply(_: Scope, __: TransformFrame, types: Types, results: Types) -> Transform | None:
        if not types or results != types[:1]:
            return None
        return Transform(name=name, code=code, types=types, results=results)

    return apply


def _apply_map(scope: Scope, _: TransformFrame, types: Types, results: Types) -> Transform | None:
    if not types:
        return None
    size = scope.choose([3, 2, 4])
    options = scope.choose(["", ", batch_size=2"])
    code = f"lambda *xs: lax.map(lambda x: {{f}}(*x), xs{options})"
    return _make_map("map", code, types, results, size)


def _apply_cond(_: Scope, __: TransformFrame, types: Types, results: Types) -> Transform:
    code = "lambda p, *a: lax.cond(p, {f}, lambda *b: jax.tree.map(jnp.zeros_like, {f}(*b)), *a)"
    return Transform(name="cond", code=code, types=(ArrayType((), "bool"), *types), results=results)


def _apply_switch(_: Scope, __: TransformFrame, types: Types, results: Types) -> Transform:
    zeros = "lambda *b: jax.tree.map(jnp.zeros_like, {f}(*b))"
    ones = "lambda *b: jax.tree.map(jnp.ones_like, {f}(*b))"
    code = f"lambda n, *a: lax.switch(n, [{{f}}, {zeros}, {ones}], *a)"
    return Transform(
        name="switch", code=code, types=(ArrayType((), "int32"), *types), results=results
    )


TRANSFORMS: Final = (
    TransformKind(name="jit", apply=_apply_jit),
    TransformKind(name="vmap", apply=_apply_vmap, make_frame=_make_vmap_frame),
    TransformKind(name="grad", apply=_apply_grad, modes=REVERSE),
    TransformKind(
        name="vjp",
        apply=_make_linear("vjp", "jax.vjp(F, XS)[1](jax.tree.map(jnp.ones_like, F(XS)))"),
        modes=REVERSE,
    ),
    TransformKind(
        name="jvp",
        apply=_make_linear("jvp", "jax.jvp(F, (XS,), jax.tree.map(jnp.ones_like, (XS,)))"),
        modes=FORWARD,
    ),
    TransformKind(
        name="linear_transpose",
        apply=_make_linear(
            "linear_transpose",
            "jax.linear_transpose(jax.linearize(F, XS)[1], XS)"
            "(jax.tree.map(jnp.ones_like, F(XS)))",
        ),
        modes=REVERSE,
    ),
    TransformKind(
        name="jacrev", apply=_make_jacobian("jacrev"), modes=REVERSE, once=True
    ),
    TransformKind(name="jacfwd", apply=_make_jacobian("jacfwd"), modes=FORWARD, once=True),
    TransformKind(
        name="hessian", apply=_apply_hessian, modes=("forward", "reverse"), once=True
    ),
    TransformKind(name="checkpoint", apply=_apply_checkpoint),
    TransformKind(
        name="custom_jvp",
        apply=_make_custom("custom_jvp", "defjvp(lambda xs, ts: jax.jvp(f, xs, ts))"),
    ),
    TransformKind(
        name="custom_vjp",
        apply=_make_custom(
            "custom_vjp", "defvjp(lambda *xs: (f(*xs), xs), lambda xs, ct: jax.vjp(f, *xs)[1](ct))"
        ),
        lacks=FORWARD,
    ),
    TransformKind(name="scan", apply=_apply_scan),
    TransformKind(name="scan(carry)", apply=_apply_carry_scan),
    TransformKind(
        name="fori_loop",
        apply=_make_loop(
            "fori_loop", "lambda a, *r: lax.fori_loop(0, 3, lambda i, c: {f}(c, *r), a)"
        ),
    ),
    TransformKind(
        name="while_loop",
        apply=_make_loop(
            "while_loop",
            "lambda a, *r: lax.while_loop(lambda s: s[0] < 3, "
            "lambda s: (s[0] + 1, {f}(s[1], *r)), (0, a))[1]",
        ),
        lacks=REVERSE,
    ),
    TransformKind(name="map", apply=_apply_map),
    TransformKind(name="cond", apply=_apply_cond),
    TransformKind(name="switch", apply=_apply_switch),
    TransformKind(
        name="shard_map", apply=apply_shard_map, make_frame=make_shard_map_frame, once=True
    ),
    TransformKind(
        name="jit(shardings)", apply=apply_sharded_jit,
        make_frame=make_mesh_frame, once=True,
    ),
    TransformKind(name="export", apply=apply_export, lacks=(*FORWARD, *REVERSE), once=True),
)  # fmt: skip
