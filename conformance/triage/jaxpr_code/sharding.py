"""Rules for programs on several devices: shard_map, collectives, placement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from conformance.triage.jaxpr_code.literals import (
    render_items,
    render_plain,
    render_spec,
    render_tuple,
)
from conformance.triage.jaxpr_code.template import fill

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.triage.jaxpr_code.program import CodeValue
    from conformance.triage.jaxpr_code.writer import Equation, Rule

CHECKED_BY_TYPE = (0, 6, 0)
"""Release from which types contain the varying axes; before, the check inserted equations."""
ON_DEVICE = (0, 7, 1)
"""Release from which the default memory kind of every device is called `device`."""
RESHARD = (0, 8, 2)
# Releases differ in the capital letter.
SPACES: Final = {"Device": "Device", "Host": "Host", "device": "Device", "host": "Host"}


def _require_spec(eqn: Equation, parameter: str, data: Any) -> str:
    """Return the text of a PartitionSpec."""
    if (text := render_spec(data)) is None:
        raise eqn.make_error(parameter)
    return text


def render_sharding(eqn: Equation, parameter: str, data: Any, *, abstract: bool = False) -> str:
    """Return the text of a sharding, optionally of an abstract mesh."""
    match data:
        case ["sharding", ["mesh", *mesh], list(parts), kind]:
            text = _require_spec(eqn, parameter, parts)
            if _is_manual(mesh) and kind is None:
                return text  # of the mesh that is current within shard_map
            usual = kind is None or (kind == "device" and eqn.program.release >= ON_DEVICE)
            more = "" if usual else f", memory_kind={render_plain(kind)}"
            of = f"{eqn.program.name_mesh(mesh)}{'.abstract_mesh' if abstract else ''}"
            return f"NamedSharding({of}, {text}{more})"
        case ["single", int(device), kind]:
            more = "" if kind is None else f", memory_kind={render_plain(kind)}"
            return f"jax.sharding.SingleDeviceSharding(jax.devices()[{device}]{more})"
        case _:
            raise eqn.make_error(parameter)


def render_space(eqn: Equation, parameter: str, data: Any) -> str:
    """Return the text of a memory space."""
    if data not in SPACES:
        raise eqn.make_error(parameter)
    return f"jax.memory.Space.{SPACES[data]}"


def _is_manual(mesh: Sequence[Any]) -> bool:
    return any("Manual" in axis for axis in mesh)


def _write_shard_map(eqn: Equation) -> str:
    match eqn.take("mesh"):
        case ["mesh", *mesh]:
            pass
        case _:
            raise eqn.make_error("mesh")
    in_specs, out_specs = (
        # Older releases call the parameters `in_names` and `out_names`.
        [_require_spec(eqn, new, part) for part in eqn.take(new) or eqn.take(old) or []]
        for new, old in (("in_specs", "in_names"), ("out_specs", "out_names"))
    )
    parameters = [("", [_shard_name(value)]) for value in eqn.inputs]
    keywords = [eqn.write_function("shard", eqn.get_jaxpr("jaxpr"), parameters)]
    if not _is_manual(mesh):  # else it is within another shard_map, whose mesh is current
        keywords.append(f"mesh={eqn.program.name_mesh(mesh)}")
    keywords += [
        f"in_specs={render_tuple(in_specs)}",
        f"out_specs={render_items(out_specs)}",
    ]
    # A release has one of the two names.
    if False in [eqn.take(name) for name in ("check_rep", "check_vma")]:
        keywords.append("check=False")
    names, auto = [axis[0] for axis in mesh], eqn.take("auto") or []
    # Three spellings, by release; `auto` lists the other axes.
    manual = eqn.take("newly_manual_axes") or eqn.take("manual_axes")
    manual = manual or [name for name in names if name not in auto]
    if set(manual) != set(names):
        keywords.append(f"axis_names={{{', '.join(map(render_plain, manual))}}}")
    call = f"env.compat.shard_map({', '.join(keywords)})"
    return f"mapped = {call}({', '.join(eqn.texts)})"


def _shard_name(value: CodeValue) -> str:
    return f"{value.text}_shard" if value.text.isidentifier() else "shard"


def _write_varying(eqn: Equation) -> str | list[CodeValue]:
    """Write a cast to varying, except where jax inserts the cast itself."""
    names = eqn.take("axes")
    eqn.take("axis_index_groups")
    known = all(set(names) <= set(value.aval.more.vma) for value in eqn.inputs)
    if eqn.take("to", "varying") != "varying":
        raise eqn.make_error("to")
    if known or eqn.program.release < CHECKED_BY_TYPE:
        return eqn.inputs
    return fill(eqn, "varying = env.compat.pvary({()}, {axes:axes})")


def _write_all_to_all(eqn: Equation) -> str:
    # If the axes differ, the function without `tiled` also transposes.
    moves = eqn.take("split_axis") != eqn.take("concat_axis")
    tiled = ", tiled=True" if eqn.take("tiled") or moves else ""
    return fill(
        eqn,
        "lax.all_to_all({0}, {axis_name:axes}, {split_axis}, {concat_axis}"
        f"{{=axis_index_groups?null}}{tiled})",
    )


def _write_constraint(eqn: Equation) -> str:
    text = render_sharding(eqn, "sharding", eqn.take("sharding"))
    for name in ("context_mesh", "resource_env"):
        # A NamedSharding contains its mesh.
        if eqn.take(name) not in (None, ["mesh"]) and "NamedSharding" not in text:
            raise eqn.make_error(name, "the mesh of the context is not known")
    return f"placed = lax.with_sharding_constraint({eqn.texts[0]}, {text})"


def _write_reshard(eqn: Equation) -> str:
    # A sharding that was given by an abstract mesh does not name devices.
    abstract = eqn.take("concrete_mesh") is None
    text = render_sharding(eqn, "dst_sharding", eqn.take("dst_sharding"), abstract=abstract)
    function = "jax.reshard" if eqn.program.release >= RESHARD else "jax.sharding.reshard"
    return f"{function}({eqn.texts[0]}, {text})"


def _write_device_put(eqn: Equation) -> str:
    if len(eqn.inputs) != 1:
        raise eqn.make_error("devices", "expected one array")
    (place,), semantics = eqn.take("devices"), str(eqn.take("copy_semantics"))
    if place is None:
        return fill(eqn, "jax.device_put({0})")
    render = render_space if isinstance(place, str) else render_sharding
    alias = ", may_alias=True" if "ALIAS" in semantics else ""
    return f"jax.device_put({eqn.texts[0]}, {render(eqn, 'devices', place)}{alias})"


_GATHERED = (
    "lax.all_gather({0}, {axis_name:axes}{=axis_index_groups?null}{axis=all_gather_dimension?0}"
    "{=tiled?}"
)
RULES: Final[dict[str, str | Rule]] = {
    **dict.fromkeys(
        # Releases have three names; of an untraced number jax computes the sum at once, without a
        # collective.
        ("psum", "psum2", "psum_invariant"),
        "psum = lax.psum({staged}, {axes:axes}{=axis_index_groups?null})",
    ),
    **dict.fromkeys(
        ("pmax", "pmin"), "lax.{primitive}({staged}, {axes:axes}{=axis_index_groups?null})"
    ),
    **dict.fromkeys(("pvary", "pcast", "pbroadcast"), _write_varying),
    "all_gather": f"{_GATHERED})",
    "all_gather_invariant": f'{_GATHERED}, to="invarying")',
    "all_to_all": _write_all_to_all,
    "axis_index": "lax.axis_index({axis_name:axes})",
    "device_put": _write_device_put,
    "mesh_cast": _write_reshard,
    "ppermute": "passed_on = lax.ppermute({0}, {axis_name:axes}, {perm})",
    "reduce_scatter": (
        "lax.psum_scatter({0}, {axis_name:axes}{=axis_index_groups?null}"
        "{=scatter_dimension?0}{=tiled?})"
    ),
    "reshard": _write_reshard,
    "shard_map": _write_shard_map,
    "sharding_constraint": _write_constraint,
}
"""The rule of each primitive: a function, or a template."""
