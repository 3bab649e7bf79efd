"""Operations that move elements: shapes, order, joining, padding; arrays of constants."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from conformance.fuzz.array_type import ArrayType
from conformance.fuzz.operation import (
    ANY,
    NUMBER,
    REAL,
    Operation,
    make_calls,
    make_operations,
)

if TYPE_CHECKING:
    from conformance.fuzz.scope import Scope


def draw_reshape(scope: Scope, operation: Operation) -> None:
    """Add another shape of the same elements."""
    x = scope.pick_kind(ANY, narrow=True)
    size = x.type.size
    shapes: list[tuple[int, ...]] = [(size,), (1, size), (size, 1), tuple(reversed(x.type.shape))]
    shapes += [(2, size // 2)] if size and size % 2 == 0 else []
    shapes += [(3, size // 3)] if size and size % 3 == 0 else []
    shape = scope.choose(shapes)
    order = scope.choose(["", ', order="F"'])
    code = f"{operation.name}({{0}}, {shape}{order})"
    scope.add(
        operation.name, code, [x], x.type.with_shape(*shape), twin=code.replace("jnp.", "np.")
    )


def draw_transpose(scope: Scope, operation: Operation) -> None:
    """Add a permutation of the axes."""
    x = scope.pick_kind(ANY, smallest=2, narrow=True)
    rank = x.type.rank
    order = scope.choose(
        [tuple(reversed(range(rank))), (*range(1, rank), 0), (rank - 1, *range(rank - 1))]
    )
    code = f"{operation.name}({{0}}, {order})"
    result = x.type.with_shape(*(x.type.shape[axis] for axis in order))
    scope.add(operation.name, code, [x], result, twin=f"np.transpose({{0}}, {order})")


def draw_axis_move(scope: Scope, operation: Operation) -> None:
    """Add an exchange or a move of an axis."""
    x = scope.pick_kind(ANY, smallest=2)
    a, b = scope.choose([(0, -1), (-1, 0), (0, 1), (1, 0)])
    shape = [*x.type.shape]
    if operation.name == "jnp.moveaxis":
        shape.insert(b % x.type.rank, shape.pop(a))
    else:
        shape[a], shape[b] = shape[b], shape[a]
    code = f"{operation.name}({{0}}, {a}, {b})"
    scope.add(
        operation.name, code, [x], x.type.with_shape(*shape), twin=code.replace("jnp.", "np.")
    )


def draw_expand(scope: Scope, operation: Operation) -> None:
    """Add a new axis of length one."""
    x = scope.pick_kind(ANY)
    axis = scope.integer(0, x.type.rank)
    shape = (*x.type.shape[:axis], 1, *x.type.shape[axis:])
    code = f"{operation.name}({{0}}, {axis})" if operation.name == "jnp.expand_dims" else (
        f"{operation.name}({{0}}, ({axis},))"
    )  # fmt: skip
    scope.add(operation.name, code, [x], x.type.with_shape(*shape),
              twin=f"np.expand_dims({{0}}, {axis})")  # fmt: skip


def draw_squeeze(scope: Scope, operation: Operation) -> None:
    """Add the removal of all axes of length one."""
    x = scope.pick(
        lambda type_: 1 in type_.shape,
        lambda: ArrayType((1, *scope.choose_shape(0, 2)), scope.choose_dtype(ANY)),
    )
    shape = tuple(extent for extent in x.type.shape if extent != 1)
    code = f"{operation.name}({{0}})"
    scope.add(operation.name, code, [x], x.type.with_shape(*shape), twin="np.squeeze({0})")


def draw_broadcast(scope: Scope, operation: Operation) -> None:
    """Add a broadcast to a larger shape."""
    x = scope.pick_kind(ANY, narrow=True)
    size = scope.choose([2, 3, 1, 0])
    shape = (size, *x.type.shape)
    code = f"jnp.broadcast_to({{0}}, {shape})"
    twin = f"np.broadcast_to({{0}}, {shape})"
    if operation.name == "lax.broadcast":
        code = f"lax.broadcast({{0}}, ({size},))"
    elif operation.name == "lax.broadcast_in_dim":
        code = f"lax.broadcast_in_dim({{0}}, {shape}, {tuple(range(1, len(shape)))})"
    scope.add(operation.name, code, [x], x.type.with_shape(*shape), twin=twin)


def draw_flip(scope: Scope, operation: Operation) -> None:
    """Add a reversal, or a cyclic shift."""
    x = scope.pick_kind(ANY, smallest=2 if operation.name == "jnp.fliplr" else 1, narrow=True)
    axis = scope.choose_axis(x.type)
    shift = scope.choose([1, -1, 2, 7])
    arguments = {
        "jnp.flip": f"axis={axis}", "jnp.roll": f"{shift}, axis={axis}",
        "lax.rev": f"({(axis or 0) % x.type.rank},)",
    }.get(operation.name, "")  # fmt: skip
    code = f"{operation.name}({', '.join(['{0}', *([arguments] if arguments else [])])})"
    twin = (
        f"np.flip({{0}}, axis={axis})"
        if operation.name == "lax.rev"
        else code.replace("jnp.", "np.")
    )
    scope.add(operation.name, code, [x], x.type, twin=twin)


def draw_rot90(scope: Scope, operation: Operation) -> None:
    """Add a rotation of a matrix."""
    x = scope.pick_kind(ANY, smallest=2)
    k = scope.choose([1, 2, 3, -1])
    rows, columns, *rest = x.type.shape
    shape = (columns, rows, *rest) if k % 2 else x.type.shape
    code = f"{operation.name}({{0}}, {k})"
    scope.add(
        operation.name, code, [x], x.type.with_shape(*shape), twin=code.replace("jnp.", "np.")
    )


def draw_repeat(scope: Scope, operation: Operation) -> None:
    """Add a repetition of elements or of the whole."""
    x = scope.pick_kind(ANY, smallest=1, largest=2)
    count = scope.choose([2, 1, 3, 0])
    first, *rest = x.type.shape
    if operation.name == "jnp.tile":
        code = f"jnp.tile({{0}}, ({count}, {', '.join('1' for _ in rest)}))"
    else:
        code = f"jnp.repeat({{0}}, {count}, axis=0)"
    scope.add(operation.name, code, [x], x.type.with_shape(count * first, *rest),
              twin=code.replace("jnp.", "np."))  # fmt: skip


def draw_join(scope: Scope, operation: Operation) -> None:
    """Add a concatenation or a stack of arrays of one type."""
    x = scope.pick_kind(ANY, smallest=1, largest=2, narrow=True)
    y = scope.pick(lambda type_: type_ == x.type, lambda: x.type)
    first, *rest = x.type.shape
    shapes = {
        "jnp.concatenate": (2 * first, *rest), "lax.concatenate": (2 * first, *rest),
        "jnp.stack": (2, first, *rest),
        "jnp.vstack": (2, first) if not rest else (2 * first, *rest),
        "jnp.hstack": (2 * first,) if not rest else (first, 2 * rest[0], *rest[1:]),
        "jnp.dstack": (1, first, 2) if not rest else (first, rest[0], 2),
        "jnp.column_stack": (first, 2) if not rest else (first, 2 * rest[0]),
        "jnp.append": (2 * math.prod(x.type.shape),),
    }  # fmt: skip
    shape = shapes[operation.name]
    operands = "{0}, {1}" if operation.name == "jnp.append" else "[{0}, {1}]"
    code = f"{operation.name}({operands}{', 0' if operation.name == 'lax.concatenate' else ''})"
    twin = code.replace("jnp.", "np.").replace("lax.", "np.")
    scope.add(operation.name, code, [x, y], x.type.with_shape(*shape), twin=twin)


def draw_split(scope: Scope, operation: Operation) -> None:
    """Add a split in two."""
    x = scope.pick_kind(ANY, smallest=1, least=1)
    first, *rest = x.type.shape
    at = scope.integer(0, first)
    code = f"{operation.name}({{0}}, [{at}])"
    scope.add(
        operation.name, code, [x], x.type.with_shape(at, *rest),
        x.type.with_shape(first - at, *rest),
        twin=code.replace("jnp.", "np."),
    )  # fmt: skip


def draw_pad(scope: Scope, operation: Operation) -> None:
    """Add a padding of the first axis."""
    mode = scope.choose(["constant", "edge", "reflect", "symmetric", "wrap", "linear_ramp",
                         "maximum", "mean"])  # fmt: skip
    x = scope.pick_kind(ANY if mode == "constant" else REAL, smallest=1, largest=2, least=2)
    before, after = scope.choose([(1, 1), (0, 2), (3, 0)])
    widths = f"(({before}, {after}){', (0, 0)' * (x.type.rank - 1)},)"
    first, *rest = x.type.shape
    code = f'jnp.pad({{0}}, {widths}, mode="{mode}")'
    twin = code.replace("jnp.", "np.") if mode not in {"mean", "linear_ramp"} else ""
    scope.add(
        operation.name, code, [x], x.type.with_shape(first + before + after, *rest), twin=twin
    )


def draw_lax_pad(scope: Scope, operation: Operation) -> None:
    """Add a padding with low, high and interior elements, which may be negative."""
    x = scope.pick_kind(NUMBER, smallest=1, largest=1, least=1)
    low, high, interior = scope.choose([(1, 1, 0), (0, 0, 1), (-1, 2, 1), (2, -1, 0)])
    size = x.type.size + max(0, x.type.size - 1) * interior + low + high
    if size < 0:
        return
    value = f'jnp.array(1, "{x.type.dtype}")'
    code = f"{operation.name}({{0}}, {value}, [({low}, {high}, {interior})])"
    scope.add(operation.name, code, [x], x.type.with_shape(size))


def draw_triangle(scope: Scope, operation: Operation) -> None:
    """Add a triangle of a matrix."""
    x = scope.pick_kind(ANY, smallest=2)
    k = scope.choose([0, 1, -1])
    code = f"{operation.name}({{0}}, {k})"
    scope.add(operation.name, code, [x], x.type, twin=code.replace("jnp.", "np."))


def draw_diagonal(scope: Scope, operation: Operation) -> None:
    """Add a diagonal of a matrix, its sum, or a matrix with a diagonal."""
    k = scope.choose([0, 1, -1])
    if operation.name in {"jnp.diag", "jnp.diagflat"}:
        x = scope.pick_kind(ANY, smallest=1, largest=1)
        size = x.type.size + abs(k)
        result = x.type.with_shape(size, size)
    else:
        x = scope.pick_kind(NUMBER, smallest=2, largest=2)
        rows, columns = x.type.shape
        length = max(0, min(rows, columns - k) if k >= 0 else min(rows + k, columns))
        result = x.type.with_shape(length)
        if operation.name == "jnp.trace":
            if x.type.kind not in {"float", "complex"}:
                return
            result = x.type.with_shape()
    code = f"{operation.name}({{0}}, {k})"
    scope.add(operation.name, code, [x], result, twin=code.replace("jnp.", "np."))


def draw_meshgrid(scope: Scope, operation: Operation) -> None:
    """Add a grid of two vectors."""
    x = scope.pick_kind(NUMBER, smallest=1, largest=1)
    y = scope.pick(lambda type_: type_.rank == 1, lambda: x.type)
    indexing = scope.choose(["xy", "ij"])
    shape = (y.type.size, x.type.size) if indexing == "xy" else (x.type.size, y.type.size)
    code = f'{operation.name}({{0}}, {{1}}, indexing="{indexing}")'
    scope.add(operation.name, code, [x, y], x.type.with_shape(*shape), y.type.with_shape(*shape))


def draw_select_n(scope: Scope, operation: Operation) -> None:
    """Add a choice among arrays by an index array or by conditions."""
    x = scope.pick_kind(NUMBER)
    y = scope.pick(lambda type_: type_ == x.type, lambda: x.type)
    if operation.name == "jnp.select":
        condition = scope.pick(lambda type_: type_ == x.type.with_dtype("bool"),
                               lambda: x.type.with_dtype("bool"))  # fmt: skip
        scope.add(
            operation.name, "jnp.select([{0}, ~{0}], [{1}, {2}], 3)", [condition, x, y], x.type
        )
        return
    wanted = x.type.with_dtype("int32")
    index = scope.pick(lambda type_: type_ == wanted, lambda: wanted)
    if operation.name == "lax.select_n":
        code = "lax.select_n(jnp.clip({0}, 0, 1), {1}, {2})"
    else:
        code = f'jnp.choose({{0}}, [{{1}}, {{2}}], mode="{scope.choose(["wrap", "clip"])}")'
    scope.add(operation.name, code, [index, x, y], x.type)


def draw_creation(scope: Scope, operation: Operation) -> None:
    """Add an array of constants; `call` makes it, `result` is its dtype."""
    shape_text, _, dtype = operation.result.partition(" ")
    shape = tuple(int(extent) for extent in shape_text.split(",") if extent)
    scope.add(operation.name, operation.call, [], ArrayType(shape, dtype))


def _make_creations() -> tuple[Operation, ...]:
    made = {
        "jnp.arange(4)": "4 int32", "jnp.arange(0, 1, 0.25)": "4 float32",
        "jnp.arange(5, 0, -2, dtype='int8')": "3 int8",
        "jnp.linspace(-1.0, 2.0, 5)": "5 float32",
        "jnp.linspace(0, 3, 4, endpoint=False, dtype='bfloat16')": "4 bfloat16",
        "jnp.linspace(0, 10, 4, dtype='int32')": "4 int32",
        "jnp.logspace(-2.0, 2.0, 5)": "5 float32", "jnp.geomspace(1.0, 1000.0, 4)": "4 float32",
        "jnp.eye(3, 4, 1)": "3,4 float32", "jnp.identity(3)": "3,3 float32",
        "jnp.tri(3, 3, -1)": "3,3 float32", "lax.iota('int32', 4)": "4 int32",
        "lax.broadcasted_iota('uint8', (2, 3), 1)": "2,3 uint8",
        "jnp.full((2, 3), -0.0)": "2,3 float32", "jnp.zeros((0, 3))": "0,3 float32",
        "jnp.hanning(5)": "5 float32", "jnp.hamming(5)": "5 float32",
        "jnp.blackman(5)": "5 float32", "jnp.bartlett(5)": "5 float32",
        "jnp.kaiser(5, 8.6)": "5 float32", "jnp.fft.fftfreq(5)": "5 float32",
        "jnp.fft.rfftfreq(6, 0.5)": "4 float32",
    }  # fmt: skip
    return tuple(
        Operation(name=call.partition("(")[0], rule=draw_creation, call=call, result=result)
        for call, result in made.items()
    )


def draw_like(scope: Scope, operation: Operation) -> None:
    """Add constants with the type of another array."""
    x = scope.pick_kind(ANY, narrow=True)
    scope.add(
        operation.name, operation.call, [x], x.type, twin=operation.call.replace("jnp.", "np.")
    )


REARRANGEMENTS: Final = (
    *make_operations("jnp.reshape", draw_reshape),
    *make_operations("jnp.transpose lax.transpose", draw_transpose),
    *make_operations("jnp.swapaxes jnp.moveaxis", draw_axis_move),
    *make_operations("jnp.expand_dims lax.expand_dims", draw_expand),
    *make_operations("jnp.squeeze", draw_squeeze),
    *make_operations("jnp.broadcast_to lax.broadcast lax.broadcast_in_dim", draw_broadcast),
    *make_operations("jnp.flip jnp.flipud jnp.fliplr jnp.roll lax.rev", draw_flip),
    *make_operations("jnp.rot90", draw_rot90),
    *make_operations("jnp.tile jnp.repeat", draw_repeat),
    *make_operations(
        "jnp.concatenate lax.concatenate jnp.stack jnp.vstack jnp.hstack jnp.dstack "
        "jnp.column_stack jnp.append",
        draw_join,
    ),
    *make_operations("jnp.split jnp.array_split", draw_split),
    *make_operations("jnp.pad", draw_pad),
    *make_operations("lax.pad", draw_lax_pad),
    *make_operations("jnp.tril jnp.triu", draw_triangle),
    *make_operations("jnp.diag jnp.diagflat jnp.diagonal jnp.trace", draw_diagonal),
    *make_operations("jnp.meshgrid", draw_meshgrid),
    *make_operations("jnp.select jnp.choose lax.select_n", draw_select_n),
    *_make_creations(),
    *make_calls(
        ["jnp.zeros_like({0})", "jnp.ones_like({0})", "jnp.full_like({0}, 3)"], draw_like, ANY
    ),
)  # fmt: skip
