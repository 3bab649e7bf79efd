"""The spelling of jaxprs, normalised over releases: equal programs get equal graphs.

Each rule brings an instruction from the spelling of some releases to that of the newest, or drops
attributes without a meaning; it names these releases. Rules run in the order of
`normalise_spelling`. Differences of meaning remain: an added equation, a lost weak type.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from conformance.ir.graph import Instruction, Tensor
from conformance.ir.jaxpr.parser import RESULT
from conformance.ir.normal.rewriting import follow, follow_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conformance.ir.graph import Attribute, Computation, Module
    from conformance.ir.normal.rewriting import Moved

NAMES: Final = {
    "psum2": "psum",
    "psum_invariant": "psum",
    "pcast": "pvary",
    "pjit": "jit",
    "custom_vjp_call_jaxpr": "custom_vjp_call",
    "core_call": "call",
    "closed_call": "call",
    "remat": "checkpoint",
    "remat2": "checkpoint",
}
"""Primitives by their earlier names."""

PARAMETERS: Final = {
    "fun_jaxpr": "call_jaxpr",
    "check_rep": "check_vma",
    "manual_axes": "newly_manual_axes",
    "in_names": "in_specs",
    "out_names": "out_specs",
    "resource_env": "ctx_mesh",
}
"""Parameters, and roles of bodies, by their earlier names."""

ELEMENTWISE: Final = frozenset({"psum", "pmax", "pmin", "pvary", "unreduced_psum"})
"""Collectives that take each operand separately, and ignore the order of axes."""

COLLECTIVES: Final = ELEMENTWISE | {
    *("ppermute", "axis_index", "all_gather", "all_gather_invariant", "all_gather_reduced"),
    *("all_to_all", "reduce_scatter", "ragged_all_to_all", "pgather", "pbroadcast"),
}

# `jit` has `compiler_options_kvs` from 0.4.36 on, `scan` has `_split_transpose` up to 0.8.
NEUTRAL: Final[dict[str, dict[str, tuple[Attribute, ...]]]] = {
    "jit": {
        "compiler_options_kvs": ((),),
        "ctx_mesh": (("mesh",),),
        "keep_unused": (False,),
    },
    "scan": {"_split_transpose": (False,)},
    "top_k": {"is_stable": (True,)},
}
"""Values of parameters with the meaning that older releases have without the parameter."""

BOOKKEEPING: Final = frozenset(
    {
        *("jvp_jaxpr_fun", "jvp_jaxpr_thunk", "fwd_jaxpr_thunk", "fwd", "bwd", "out_trees"),
        *("debug_info", "linear", "rewrite", "inline", "branches_platforms"),
    }
)
"""Parameters that hold functions still to be traced, or private state of jax."""

ALL_OF: Final = {
    "donated_invars": False,
    "in_shardings": "unspecified",
    "out_shardings": "unspecified",
    "in_layouts": None,
    "out_layouts": None,
}
"""The default entry of parameters that have an entry for each input or output."""

EFFECTS = "ctx effects"
"""Attribute in which the worker stores the effects of an equation."""


def normalise_spelling(module: Module) -> None:
    """Bring a jaxpr to the newest spelling, in place.

    Args:
        module: A module of the kind `jaxpr`.
    """
    for instruction in module.walk():
        rename_primitive(instruction)
        rename_parameters(instruction)
        for rule in (*OF_PRIMITIVE.get(instruction.op, ()), *RULES):
            rule(instruction)
    # After renaming: which reductions take each operand separately is known by the newest name.
    for computation in module.find_reachable():
        split_reductions(computation)


def rename_primitive(instruction: Instruction) -> None:
    """Give a primitive its newest name, e.g. `jit` for `pjit` (up to 0.6.2).

    `psum2` (up to 0.5.3) and `psum_invariant` (from 0.6.0) become `psum`. `pbroadcast` (up to
    0.5.3) becomes `pvary`, except the collective of that name, which has a source.
    """
    # Before the table: `pvary` of one release and a collective of another share this name.
    if instruction.op == "pbroadcast" and "source" not in instruction.attributes:
        instruction.op = "pvary"
    instruction.op = NAMES.get(instruction.op, instruction.op)


def rename_parameters(instruction: Instruction) -> None:
    """Give parameters their newest names, also those that became bodies."""
    attributes = instruction.attributes
    # Most equations have none of them, and keep their dictionary.
    if not PARAMETERS.keys().isdisjoint(attributes):
        renamed = {PARAMETERS.get(name, name): value for name, value in attributes.items()}
        instruction.attributes = renamed
    instruction.bodies = tuple(
        (PARAMETERS.get(role, role), inner) for role, inner in instruction.bodies
    )


def normalise_axes(instruction: Instruction) -> None:
    """Make the axes of a collective a tuple: `'x'` (up to 0.5.0) becomes `('x',)`.

    The axes of a reduction are sorted, because some releases (0.7.1) take them from a set.
    """
    if instruction.op not in COLLECTIVES:
        return
    attributes = instruction.attributes
    if "axis_name" in attributes:
        attributes["axes"] = attributes.pop("axis_name")
    if isinstance(attributes.get("axes"), (str, int)):
        attributes["axes"] = (attributes["axes"],)
    axes = attributes.get("axes")
    # The others move data in the order of their axes. Names and numbers do not compare.
    if instruction.op in ELEMENTWISE and isinstance(axes, tuple):
        attributes["axes"] = tuple(sorted(axes, key=str))


def normalise_specs(instruction: Instruction) -> None:
    """Convert the names of a `shard_map` (up to 0.6.0) from pairs of dimension and axes to specs.

    Trailing dimensions that are not cut are dropped.
    """
    for name in ("in_specs", "out_specs"):
        specs = instruction.attributes.get(name)
        if isinstance(specs, tuple):
            instruction.attributes[name] = tuple(_normalise_spec(spec) for spec in specs)


def _normalise_spec(spec: Attribute) -> Attribute:
    if not isinstance(spec, tuple):
        return spec
    cut = {}
    for part in spec:
        match part:
            case (int(place), axes):
                cut[place] = axes
            case _:
                pass
    # Only if every part is such a pair: the axes of a dimension are a tuple as well.
    if spec and len(cut) == len(spec):
        spec = tuple([cut.get(place, ()) for place in range(max(cut) + 1)])
    while spec and spec[-1] == ():
        spec = spec[:-1]
    return spec


def normalise_manual_axes(instruction: Instruction) -> None:
    """Replace the axes of a `shard_map` that are not manual (`auto`, up to 0.6.0) by the others."""
    auto, mesh = instruction.attributes.pop("auto", None), instruction.attributes.get("mesh")
    if isinstance(auto, tuple) and isinstance(mesh, tuple):
        axes = [axis[0] for axis in mesh[1:] if isinstance(axis, tuple)]
        # The newest releases print a set of axes, which the worker sorts.
        manual = sorted(str(axis) for axis in axes if axis not in auto)
        instruction.attributes["newly_manual_axes"] = tuple(manual)


def normalise_scan_counts(instruction: Instruction) -> None:
    """Replace `ft_in` of a scan (from 0.11.0) by the numbers of its constants and carries."""
    # The outputs follow from the inputs and the body.
    instruction.attributes.pop("ft_out", None)
    match instruction.attributes.pop("ft_in", None):
        case ("parts", consts, carry, *_):
            instruction.attributes |= {"num_consts": consts, "num_carry": carry}
        case _:
            pass


def normalise_platforms(instruction: Instruction) -> None:
    """Replace the default of a choice by platform (up to 0.6.0) by a last platform None."""
    default, platforms = instruction.attributes.pop("has_default", False), "platforms"
    named = instruction.attributes.get(platforms)
    if default is True and isinstance(named, tuple):
        instruction.attributes[platforms] = (*named, None)


def drop_last_axis(instruction: Instruction) -> None:
    """Drop the axis of a `top_k` if it is the last, as releases before 0.8.1 imply."""
    if isinstance(instruction.type, Tensor):
        return
    first = instruction.type[0]
    if isinstance(first, Tensor) and instruction.attributes.get("axis") == len(first.shape) - 1:
        del instruction.attributes["axis"]


def drop_bookkeeping(instruction: Instruction) -> None:
    """Drop functions still to be traced: they have no meaning, and vary by release."""
    for name in BOOKKEEPING & instruction.attributes.keys():
        del instruction.attributes[name]


def drop_neutral(instruction: Instruction) -> None:
    """Drop parameters at the value that is equivalent to their absence; None always is."""
    # The value of a constant that the worker could not reach is None, which is no default.
    if instruction.op in {"literal", "constant", "parameter"}:
        return
    neutral = NEUTRAL.get(instruction.op, {})
    instruction.attributes = {
        name: value
        for name, value in instruction.attributes.items()
        if not _is_neutral(name, value, neutral.get(name, ()))
    }


def _is_neutral(name: str, value: Attribute, neutral: tuple[Attribute, ...]) -> bool:
    if isinstance(value, tuple) and name in ALL_OF:
        return all(part == ALL_OF[name] for part in value)
    # The types are compared as well, because 0 == False in Python.
    return value is None or any(type(value) is type(other) and value == other for other in neutral)


def drop_trivial_shardings(instruction: Instruction) -> None:
    """Drop a sharding (from 0.5.0 on) that cuts nothing, on a mesh without explicit axes."""
    # On a mesh with explicit axes the sharding is a part of the type, so it stays.
    for name in ("sharding", "out_sharding"):
        if _is_trivial(instruction.attributes.get(name)):
            del instruction.attributes[name]


def _is_trivial(sharding: Attribute) -> bool:
    match sharding:
        case ("sharding", ("mesh", *axes), tuple(spec), *_):
            return not any(spec) and not any(
                isinstance(axis, tuple) and "Explicit" in axis for axis in axes
            )
        case _:
            return False


def drop_variance(instruction: Instruction) -> None:
    """Drop the varying axes of results (from 0.6.2 on), which follow from the equations."""
    instruction.attributes.pop(f"{RESULT}vma", None)


def drop_axis_effects(instruction: Instruction) -> None:
    """Drop the effect of naming an axis, which does not order an equation."""
    effects = instruction.attributes.get(EFFECTS)
    if isinstance(effects, tuple):
        others = tuple(effect for effect in effects if effect != "NamedAxisEffect")
        instruction.attributes[EFFECTS] = others
        # Equations without effects have no such attribute.
        if not others:
            del instruction.attributes[EFFECTS]


def split_reductions(computation: Computation) -> None:
    """Replace a reduction of several operands (up to 0.8.1) by a reduction of each."""
    moved: Moved = {}
    instructions: list[Instruction] = []
    for instruction in computation.instructions:
        follow(instruction, moved)
        made = _split_operands(instruction)
        if len(made) > 1:
            moved[instruction] = [(piece, ()) for piece in made]
        instructions += made
    computation.instructions = instructions
    computation.results = [follow_value(value, moved) for value in computation.results]


def _split_operands(instruction: Instruction) -> list[Instruction]:
    type_ = instruction.type
    if instruction.op not in ELEMENTWISE or isinstance(type_, Tensor):
        return [instruction]
    return [
        replace(
            instruction,
            name=f"{instruction.name}.{number}",
            type=part,
            operands=(instruction.operands[number],),
            paths=(instruction.paths[number],),
            attributes=dict(_select_attributes(instruction.attributes, number)),
        )
        for number, part in enumerate(type_)
    ]


def _select_attributes(
    attributes: dict[str, Attribute], number: int
) -> Iterator[tuple[str, Attribute]]:
    """Yield the attributes of a result, without empty ones."""
    for name, value in attributes.items():
        if not (name.startswith(RESULT) and isinstance(value, tuple)):
            yield name, value
        elif value[number]:
            yield name, (value[number],)


OF_PRIMITIVE: Final[dict[str, tuple[Callable[[Instruction], None], ...]]] = {
    "platform_index": (normalise_platforms,),
    "scan": (normalise_scan_counts,),
    "shard_map": (normalise_specs, normalise_manual_axes),
    "top_k": (drop_last_axis,),
}
"""Rules for a primitive, by its newest name."""
RULES: Final[tuple[Callable[[Instruction], None], ...]] = (
    normalise_axes,
    drop_bookkeeping,
    drop_neutral,
    drop_trivial_shardings,
    drop_variance,
    drop_axis_effects,
)
"""Rules for all primitives; they use newest names, so renaming comes first."""
