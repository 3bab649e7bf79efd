"""Indexing: slices, reads and updates at computed positions, which may be out of bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.fuzz.array_type import ArrayType
from conformance.fuzz.operation import ANY, FLOAT, NUMBER, REAL, Operation, make_operations

if TYPE_CHECKING:
    from conformance.fuzz.program import Variable
    from conformance.fuzz.scope import Scope

MOST_INDICES: Final = 32
"""Elements of an array of indices."""


def draw_slice(scope: Scope, operation: Operation) -> None:
    """Add a basic index: a position, a slice, a new axis, an ellipsis."""
    x = scope.pick_kind(ANY, smallest=1, least=1, narrow=True)
    first, *rest = x.type.shape
    index, shape = scope.choose(
        [
            ("0", (*rest,)), ("-1", (*rest,)), ("1:", (first - 1, *rest)),
            ("::-1", (first, *rest)), ("::2", ((first + 1) // 2, *rest)),
            ("None", (1, first, *rest)), ("..., None", (first, *rest, 1)),
            (":-1", (first - 1, *rest)), ("5:", (max(0, first - 5), *rest)),
            ("::-2", ((first + 1) // 2, *rest)),
        ]
    )  # fmt: skip
    code = f"{{0}}[{index}]"
    scope.add(operation.name, code, [x], x.type.with_shape(*shape), twin=code)


def pick_index(scope: Scope, largest_rank: int = 2) -> Variable:
    """Draw an array of indices, which may be out of bounds."""

    def make() -> ArrayType:
        shape = scope.choose_shape(0, largest_rank)
        return ArrayType(shape, scope.choose(["int32", "uint8", "int8", "uint32"]))

    return scope.pick(
        lambda type_: type_.kind in {"int", "uint"} and type_.dtype not in {"int4", "uint4"}
        and type_.rank <= largest_rank and type_.size <= MOST_INDICES,
        make,
    )  # fmt: skip


def draw_gather(scope: Scope, operation: Operation) -> None:
    """Add a read at integer positions along the first axis."""
    x = scope.pick_kind(ANY, smallest=1, largest=2, least=1)
    index = pick_index(scope)
    shape = (*index.type.shape, *x.type.shape[1:])
    mode = scope.choose(["", ', mode="clip"', ', mode="fill"'])
    call = {
        "jnp.take": f"jnp.take({{0}}, {{1}}, axis=0{mode})",
        ".at[].get": f"{{0}}.at[{{1}}].get({mode.removeprefix(', ')})",
        "[index]": "{0}[{1}]",
    }[operation.name]  # fmt: skip
    scope.add(operation.name, call, [x, index], x.type.with_shape(*shape))


def draw_take_along_axis(scope: Scope, operation: Operation) -> None:
    """Add a read with an index array of the same shape."""
    x = scope.pick_kind(ANY, smallest=1, largest=2, least=1)
    wanted = x.type.with_dtype("int32")
    index = scope.pick(lambda type_: type_ == wanted, lambda: wanted)
    axis = scope.choose_axis(x.type)
    mode = scope.choose(["", ', mode="clip"', ', mode="fill"'])
    code = f"{operation.name}({{0}}, {{1}}, axis={axis}{mode})"
    scope.add(operation.name, code, [x, index], x.type)


def draw_scatter(scope: Scope, operation: Operation) -> None:
    """Add an update at integer positions along the first axis, some of them equal."""
    method = operation.name.removeprefix(".at[].")
    special = {"set": ANY, "min": REAL, "max": REAL, "divide": FLOAT}
    kinds: tuple[str, ...] = special.get(method, NUMBER)
    x = scope.pick_kind(kinds, smallest=1, largest=2, least=1)
    index = pick_index(scope, 1)
    if method == "set" and index.type.size > 1:
        # The order of two writes to one element is not defined.
        index = scope.pick(lambda type_: type_ == ArrayType((), "int32"),
                           lambda: ArrayType((), "int32"))  # fmt: skip
    shape = (*index.type.shape, *x.type.shape[1:])
    wanted = x.type.with_shape(*shape)
    update = scope.pick(lambda type_: type_ == wanted, lambda: wanted)
    mode = scope.choose(["", ', mode="drop"', ', mode="clip"', ", indices_are_sorted=False"])
    code = f"{{0}}.at[{{1}}].{method}({{2}}{mode})"
    scope.add(operation.name, code, [x, index, update], x.type)


def draw_slice_update(scope: Scope, operation: Operation) -> None:
    """Add an update of a slice or of a masked part."""
    x = scope.pick_kind(NUMBER, smallest=1, largest=2, least=1)
    index = scope.choose(["1:", "::2", "0", "-1", ":", "..., 0", "::-1"])
    method = scope.choose(["set", "add", "multiply"])
    code = f"{{0}}.at[{index}].{method}(2)"
    scope.add(operation.name, code, [x], x.type)


def draw_dynamic_slice(scope: Scope, operation: Operation) -> None:
    """Add a slice at a computed position, which is clamped."""
    x = scope.pick_kind(ANY, smallest=1, largest=2, least=1)
    start = scope.pick(lambda type_: type_ == ArrayType((), "int32"),
                       lambda: ArrayType((), "int32"))  # fmt: skip
    size = scope.integer(1, x.type.shape[0])
    part = x.type.with_shape(size, *x.type.shape[1:])
    if operation.name == "lax.dynamic_slice_in_dim":
        scope.add(operation.name, f"{operation.name}({{0}}, {{1}}, {size})", [x, start], part)
        return
    if operation.name == "lax.dynamic_slice":
        zeros = "".join(", 0" for _ in x.type.shape[1:])
        code = f"{operation.name}({{0}}, ({{1}}{zeros},), {part.shape})"
        scope.add(operation.name, code, [x, start], part)
        return
    update = scope.pick(lambda type_: type_ == part, lambda: part)
    code = f"{operation.name}({{0}}, {{1}}, {{2}}, 0)"
    scope.add(operation.name, code, [x, update, start], x.type)


def draw_lax_slice(scope: Scope, operation: Operation) -> None:
    """Add a slice with constant bounds and a stride."""
    x = scope.pick_kind(ANY, smallest=1, largest=1, least=1)
    start = scope.integer(0, x.type.size)
    stop = scope.integer(start, x.type.size)
    stride = scope.choose([1, 2, 3])
    code = f"{operation.name}({{0}}, ({start},), ({stop},), ({stride},))"
    scope.add(operation.name, code, [x], x.type.with_shape(-(-(stop - start) // stride)))


INDEXING: Final = (
    *make_operations("[slice]", draw_slice),
    *make_operations("jnp.take .at[].get [index]", draw_gather),
    *make_operations("jnp.take_along_axis", draw_take_along_axis),
    *make_operations(
        ".at[].set .at[].add .at[].multiply .at[].min .at[].max .at[].divide .at[].subtract",
        draw_scatter,
    ),
    *make_operations(".at[slice]", draw_slice_update),
    *make_operations(
        "lax.dynamic_slice lax.dynamic_slice_in_dim lax.dynamic_update_slice_in_dim",
        draw_dynamic_slice,
    ),
    *make_operations("lax.slice", draw_lax_slice),
)  # fmt: skip
