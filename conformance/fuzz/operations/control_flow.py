"""Control flow within a program, with functions drawn like the program itself; collectives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.fuzz.array_type import ArrayType
from conformance.fuzz.operation import FLOAT, NUMBER, REAL, Operation, make_operations
from conformance.fuzz.operations.elementwise import ELEMENTWISE
from conformance.fuzz.program import ProgramFunction, Variable
from conformance.fuzz.scope import Scope

if TYPE_CHECKING:
    from collections.abc import Sequence

INNER: Final = tuple(
    operation for operation in ELEMENTWISE
    if operation.name in {
        "jnp.sin", "jnp.tanh", "jnp.exp", "jnp.add", "jnp.multiply", "jnp.subtract", "jnp.maximum",
        "jnp.where", "jnp.square", "jnp.negative", "lax.max", "jnp.less", "jnp.log1p",
    }
)  # fmt: skip
"""Operations within functions of control flow."""


def draw_function(
    scope: Scope, parameters: Sequence[ArrayType], results: Sequence[ArrayType]
) -> ProgramFunction:
    """Draw a function within another one.

    Args:
        scope: Scope of the outer function, whose variables it may use.
        parameters: Types of its parameters.
        results: Types of its results; where no variable has one, a parameter is converted.
    """
    number = next(scope.numbers)
    named = tuple(Variable(f"x{next(scope.numbers)}", type_) for type_ in parameters)
    inner = Scope(
        draw=scope.draw, x64=scope.x64, axes=scope.axes, outer=scope, numbers=scope.numbers,
        inputs=list(named), variables=list(named),
    )  # fmt: skip
    for _ in range(scope.integer(0, 2)):
        operation = scope.choose(INNER)
        operation.rule(inner, operation)
    returned = [_find_result(inner, wanted) for wanted in results]
    text = ", ".join(variable.name for variable in returned)
    return ProgramFunction(
        name=f"g{number}", parameters=named, steps=tuple(inner.steps),
        returns=text if len(returned) == 1 else f"({text})", results=tuple(returned),
    )  # fmt: skip


def _find_result(scope: Scope, wanted: ArrayType) -> Variable:
    """Return the newest variable of a type, or add a step that makes one."""
    for variable in reversed(scope.variables):
        if variable.type == wanted:
            return variable
    zeros = f'jnp.zeros({wanted.shape}, "{wanted.dtype}")'
    (made,) = scope.add("jnp.zeros", zeros, [], wanted)
    return made


def draw_scan(scope: Scope, operation: Operation) -> None:
    """Add a scan with a carry and a stacked operand."""
    carry = scope.pick_kind(NUMBER, largest=2)
    xs = scope.pick_kind(NUMBER, smallest=1, largest=2, least=1)
    y = ArrayType(xs.type.shape[1:], xs.type.dtype)
    function = draw_function(scope, [carry.type, y], [carry.type, y])
    options = scope.choose(["", ", reverse=True", ", unroll=2"])
    code = f"{operation.name}({function.name}, {{0}}, {{1}}{options})"
    scope.add(operation.name, code, [carry, xs], carry.type, xs.type, functions=(function,))


def draw_fori_loop(scope: Scope, operation: Operation) -> None:
    """Add a loop with a fixed number of rounds."""
    carry = scope.pick_kind(NUMBER, largest=2)
    index = ArrayType((), "int64" if scope.x64 else "int32")
    function = draw_function(scope, [index, carry.type], [carry.type])
    count = scope.choose([2, 0, 3])
    code = f"{operation.name}(0, {count}, {function.name}, {{0}})"
    scope.add(operation.name, code, [carry], carry.type, functions=(function,))


def draw_while_loop(scope: Scope, operation: Operation) -> None:
    """Add a loop with a condition that ends it after some rounds."""
    carry = scope.pick_kind(NUMBER, largest=2)
    function = draw_function(scope, [carry.type], [carry.type])
    count = scope.choose([2, 0, 3])
    code = (
        f"{operation.name}(lambda s: s[0] < {count}, "
        f"lambda s: (s[0] + 1, {function.name}(s[1])), (0, {{0}}))[1]"
    )
    scope.add(operation.name, code, [carry], carry.type, functions=(function,))


def draw_cond(scope: Scope, operation: Operation) -> None:
    """Add a choice between functions by a condition or an index."""
    x = scope.pick_kind(NUMBER, largest=2)
    functions = tuple(draw_function(scope, [x.type], [x.type]) for _ in range(2))
    names = ", ".join(function.name for function in functions)
    wanted = ArrayType((), "bool" if operation.name == "lax.cond" else "int32")
    choice = scope.pick(lambda type_: type_ == wanted, lambda: wanted)
    branches = names if operation.name == "lax.cond" else f"[{names}]"
    code = f"{operation.name}({{0}}, {branches}, {{1}})"
    scope.add(operation.name, code, [choice, x], x.type, functions=functions)


def draw_map(scope: Scope, operation: Operation) -> None:
    """Add a function of each element of the first axis."""
    xs = scope.pick_kind(NUMBER, smallest=1, largest=2, least=1)
    element = ArrayType(xs.type.shape[1:], xs.type.dtype)
    function = draw_function(scope, [element], [element])
    code = {
        "lax.map": f"lax.map({function.name}, {{0}})",
        "jax.vmap": f"jax.vmap({function.name})({{0}})",
        "jax.checkpoint": f"jax.vmap(jax.checkpoint({function.name}))({{0}})",
        "jax.jit": f"jax.vmap(jax.jit({function.name}))({{0}})",
    }[operation.name]
    scope.add(operation.name, code, [xs], xs.type, functions=(function,))


def draw_associative_scan(scope: Scope, operation: Operation) -> None:
    """Add an associative scan."""
    x = scope.pick_kind(REAL, smallest=1, least=1)
    function = scope.choose(["jnp.add", "jnp.multiply", "jnp.maximum", "jnp.minimum"])
    axis = scope.integer(0, x.type.rank - 1)
    more = scope.choose(["", ", reverse=True"])
    code = f"{operation.name}({function}, {{0}}, axis={axis}{more})"
    scope.add(operation.name, code, [x], x.type)


def draw_reduce(scope: Scope, operation: Operation) -> None:
    """Add a reduction with a function of the program, or a gradient of a scalar function."""
    x = scope.pick_kind(FLOAT, smallest=1, least=1)
    if operation.name == "jax.grad":
        function = draw_function(scope, [x.type], [x.type])
        code = f'jax.grad(lambda a: jnp.sum({function.name}(a).astype("float32")))({{0}})'
        scope.add(operation.name, code, [x], x.type, functions=(function,))
        return
    computation = scope.choose(["lax.add", "lax.max", "lax.min"])
    start = {"lax.add": "0", "lax.max": "-jnp.inf", "lax.min": "jnp.inf"}[computation]
    code = f"lax.reduce({{0}}, jnp.array({start}, {{0}}.dtype), {computation}, (0,))"
    scope.add(operation.name, code, [x], x.type.with_shape(*x.type.shape[1:]))


def draw_collective(scope: Scope, operation: Operation) -> None:
    """Add a collective over a named axis."""
    name = scope.choose([*scope.axes])
    size = scope.axes[name]
    x = scope.pick_kind(REAL if operation.name in {"lax.pmax", "lax.pmin"} else NUMBER, largest=2)
    shape, dtype = x.type.shape, x.type.dtype
    code = f'{operation.name}({{0}}, "{name}")'
    if operation.name == "lax.pmean" and x.type.kind not in {"float", "complex"}:
        return
    if operation.name == "lax.all_gather":
        tiled = bool(shape) and scope.flip()
        shape = (size * shape[0], *shape[1:]) if tiled else (size, *shape)
        code = f'lax.all_gather({{0}}, "{name}"{", tiled=True" if tiled else ""})'
    elif operation.name == "lax.ppermute":
        pairs = [(at, (at + 1) % size) for at in range(size - scope.integer(0, 1))]
        code = f'lax.ppermute({{0}}, "{name}", {pairs})'
    elif operation.name in {"lax.psum_scatter", "lax.all_to_all"}:
        if not shape or shape[0] % size or not shape[0]:
            return
        if operation.name == "lax.psum_scatter":
            shape = (shape[0] // size, *shape[1:])
            code = f'lax.psum_scatter({{0}}, "{name}", tiled=True)'
        else:
            code = f'lax.all_to_all({{0}}, "{name}", 0, 0, tiled=True)'
    elif operation.name == "lax.axis_index":
        scope.add(operation.name, f'lax.axis_index("{name}")', [], ArrayType((), "int32"))
        return
    scope.add(operation.name, code, [x], ArrayType(shape, dtype))


CONTROL_FLOW: Final = (
    *make_operations("lax.scan", draw_scan),
    *make_operations("lax.fori_loop", draw_fori_loop),
    *make_operations("lax.while_loop", draw_while_loop, lacks=("reverse",)),
    *make_operations("lax.cond lax.switch", draw_cond),
    *make_operations("lax.map jax.vmap jax.checkpoint jax.jit", draw_map),
    *make_operations("lax.associative_scan", draw_associative_scan),
    *make_operations("lax.reduce jax.grad", draw_reduce),
    *(
        Operation(name=f"lax.{name}", rule=draw_collective, needs_axis=True)
        for name in (
            "psum", "pmean", "pmax", "pmin", "all_gather", "ppermute", "psum_scatter",
            "all_to_all", "axis_index",
        )
    ),
)  # fmt: skip
