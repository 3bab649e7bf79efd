"""How programs over several devices are said: meshes, shard_map, collectives, placement."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Final

from conformance.triage.jaxpr_code.program import UnsayableError
from conformance.triage.jaxpr_code.text import axes, one_or_tuple, plain, spec, tuple_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.triage.jaxpr_code.program import Value
    from conformance.triage.jaxpr_code.writer import Equation, Rule

PUBLIC_SHARD_MAP = (0, 6, 1)
"""Release from which `jax.shard_map` is there."""
CHECKED_BY_TYPE = (0, 6, 0)
"""Release from which types say what varies; before, the check itself rewrote the program."""
ON_DEVICE = (0, 7, 1)
"""Release from which the memory of every device's arrays is called `device`, if nothing is said."""
PCAST = (0, 8, 2)
RESHARD = (0, 8, 2)
SPEC = "from jax.sharding import PartitionSpec as P"
NAMED_SHARDING = "from jax.sharding import NamedSharding"
SPACES: Final = {"Device": "Device", "Host": "Host", "device": "Device", "host": "Host"}


def mesh_text(data: Sequence[Any]) -> str:
    """Return the text of a mesh over the first devices.

    Args:
        data: Its axes: name, size, and the type of one that is not Auto.
    """
    sizes, names = [axis[1] for axis in data], [axis[0] for axis in data]
    types = [axis[2] if len(axis) > 2 else "Auto" for axis in data]  # noqa: PLR2004
    devices = f"np.array(jax.devices()[:{prod(sizes)}])"
    if len(sizes) > 1:
        devices += f".reshape({', '.join(map(str, sizes))})"
    more = ""
    if set(types) != {"Auto"}:
        more = f", axis_types={tuple_of(f'jax.sharding.AxisType.{one}' for one in types)}"
    return (
        f"Mesh({devices}, {axes(names)}{more})"
        if len(names) == 1
        else (f"Mesh({devices}, {plain(names)}{more})")
    )


def _is_manual(mesh: Sequence[Any]) -> bool:
    return any("Manual" in axis for axis in mesh[1:])


def spec_text(eqn: Equation, parameter: str, data: Any) -> str:
    """Return the text of a PartitionSpec."""
    eqn.program.imports.add(SPEC)
    said = spec(data)
    if said is None:
        raise UnsayableError(parameter, f"not known to be {plain(data)}")
    return said


def sharding_text(eqn: Equation, parameter: str, data: Any, *, abstract: bool = False) -> str:
    """Return the text of a sharding, of an abstract mesh where it names no devices."""
    match data:
        case ["sharding", ["mesh", *mesh], list(parts), kind]:
            said = spec_text(eqn, parameter, parts)
            if _is_manual(["mesh", *mesh]) and kind is None:
                return said  # of the mesh that is current within shard_map
            eqn.program.imports.add(NAMED_SHARDING)
            usual = kind is None or (kind == "device" and eqn.program.release >= ON_DEVICE)
            more = "" if usual else f", memory_kind={plain(kind)}"
            of = f"{eqn.program.mesh(mesh)}{'.abstract_mesh' if abstract else ''}"
            return f"NamedSharding({of}, {said}{more})"
        case ["single", int(device), kind]:
            more = "" if kind is None else f", memory_kind={plain(kind)}"
            return f"jax.sharding.SingleDeviceSharding(jax.devices()[{device}]{more})"
        case _:
            raise UnsayableError(parameter, f"not known to be {plain(data)}")


def space_text(parameter: str, data: Any) -> str:
    """Return the text of a memory space."""
    if data not in SPACES:
        raise UnsayableError(parameter, f"not known to be {plain(data)}")
    return f"jax.memory.Space.{SPACES[data]}"


def _shard_map(eqn: Equation) -> str:
    mesh = eqn.take("mesh")
    jaxpr = eqn.jaxpr("jaxpr")
    given = eqn.program.fresh(jaxpr.inputs, [_within(value) for value in eqn.inputs])
    specs = {
        new: [spec_text(eqn, new, one) for one in eqn.take(new) or eqn.take(old) or []]
        for new, old in (("in_specs", "in_names"), ("out_specs", "out_names"))
    }
    name = eqn.body.function(
        eqn.program.names.fresh("shard"),
        [value.text for value in given],
        lambda body: body.result(jaxpr, given),
        context=eqn.context(),
    )
    said = [name, *_mesh_keyword(eqn, mesh)]
    said.append(f"in_specs={tuple_of(specs['in_specs'])}")
    said.append(f"out_specs={one_or_tuple(specs['out_specs'])}")
    said += _shard_map_options(eqn, mesh)
    public = eqn.program.release >= PUBLIC_SHARD_MAP
    if not public:
        eqn.program.imports.add("from jax.experimental.shard_map import shard_map")
    function = "jax.shard_map" if public else "shard_map"
    return f"{function}({', '.join(said)})({', '.join(eqn.texts)})"


def _within(value: Value) -> str:
    return f"{value.text}_shard" if value.text.isidentifier() else "shard"


def _mesh_keyword(eqn: Equation, mesh: Any) -> list[str]:
    if not isinstance(mesh, list) or mesh[:1] != ["mesh"]:
        raise UnsayableError("mesh", f"not known to be {plain(mesh)}")
    if _is_manual(mesh):
        return []  # within another shard_map, whose mesh is current
    return [f"mesh={eqn.program.mesh(mesh[1:])}"]


def _shard_map_options(eqn: Equation, mesh: list[Any]) -> list[str]:
    check = [eqn.take(name) for name in ("check_rep", "check_vma")]
    manual = eqn.take("newly_manual_axes") or eqn.take("manual_axes")
    auto = eqn.take("auto")
    names = [axis[0] for axis in mesh[1:]]
    said = []
    if eqn.program.release < PUBLIC_SHARD_MAP:
        said += ["check_rep=False"] if False in check else []
        said += [f"auto=frozenset({plain(auto)})"] if auto else []
        return said
    said += ["check_vma=False"] if False in check else []
    if manual and set(manual) != set(names):
        said.append(f"axis_names={{{', '.join(map(plain, manual))}}}")
    return said


def _groups(eqn: Equation) -> list[str]:
    groups = eqn.take("axis_index_groups")
    return [] if groups is None else [f"axis_index_groups={plain(groups)}"]


def _reduction(eqn: Equation) -> str:
    name = {"psum2": "psum", "psum_invariant": "psum"}.get(eqn.primitive, eqn.primitive)
    over, more = axes(eqn.take("axes")), _groups(eqn)
    texts = [value.staged for value in eqn.inputs]
    operands = texts[0] if len(texts) == 1 else tuple_of(texts)
    return f"lax.{name}({', '.join([operands, over, *more])})"


def _varying(eqn: Equation) -> str | list[Value]:
    """Say that values vary: before types told, the check put such equations there by itself."""
    names = eqn.take("axes")
    over = axes(names)
    eqn.take("axis_index_groups")
    to = eqn.take("to", "varying")
    before = all(set(names) <= set(value.aval.more.vma) for value in eqn.inputs)
    if before or eqn.program.release < CHECKED_BY_TYPE:
        return eqn.inputs
    operand = eqn.texts[0] if len(eqn.texts) == 1 else tuple_of(eqn.texts)
    if eqn.program.release >= PCAST:
        return f"lax.pcast({operand}, {over}, to={plain(to)})"
    return f"lax.pvary({operand}, {over})"


def _axis_index(eqn: Equation) -> str:
    return f"lax.axis_index({axes(eqn.take('axis_name'))})"


def _permute(eqn: Equation) -> str:
    return f"lax.ppermute({eqn.texts[0]}, {axes(eqn.take('axis_name'))}, {plain(eqn.take('perm'))})"


def _all_gather(eqn: Equation) -> str:
    said = [eqn.texts[0], axes(eqn.take("axis_name")), *_groups(eqn)]
    if axis := eqn.take("all_gather_dimension"):
        said.append(f"axis={axis}")
    said += ["tiled=True"] if eqn.take("tiled") else []
    said += ['to="invarying"'] if eqn.primitive == "all_gather_invariant" else []
    return f"lax.all_gather({', '.join(said)})"


def _all_to_all(eqn: Equation) -> str:
    split, concat = eqn.take("split_axis"), eqn.take("concat_axis")
    said = [eqn.texts[0], axes(eqn.take("axis_name")), str(split), str(concat), *_groups(eqn)]
    if eqn.take("tiled") or split != concat:  # else the function moves axes about, too
        said.append("tiled=True")
    return f"lax.all_to_all({', '.join(said)})"


def _reduce_scatter(eqn: Equation) -> str:
    said = [eqn.texts[0], axes(eqn.take("axis_name")), *_groups(eqn)]
    if dimension := eqn.take("scatter_dimension"):
        said.append(f"scatter_dimension={dimension}")
    said += ["tiled=True"] if eqn.take("tiled") else []
    return f"lax.psum_scatter({', '.join(said)})"


def _constraint(eqn: Equation) -> str:
    said = sharding_text(eqn, "sharding", eqn.take("sharding"))
    for name in ("context_mesh", "resource_env"):
        if eqn.take(name) not in (None, ["mesh"]) and "NamedSharding" not in said:
            raise UnsayableError(name, "the mesh of the context is not known")
    return f"lax.with_sharding_constraint({eqn.texts[0]}, {said})"


def _reshard(eqn: Equation) -> str:
    abstract = eqn.take("concrete_mesh") is None
    said = sharding_text(eqn, "dst_sharding", eqn.take("dst_sharding"), abstract=abstract)
    function = "jax.reshard" if eqn.program.release >= RESHARD else "jax.sharding.reshard"
    return f"{function}({eqn.texts[0]}, {said})"


def _device_put(eqn: Equation) -> str:
    eqn.take("srcs")
    if len(eqn.inputs) != 1:
        raise UnsayableError("devices", "expected one array")
    (place,) = eqn.take("devices")
    if place is None:
        eqn.take("copy_semantics")
        return f"jax.device_put({eqn.texts[0]})"
    said = (
        space_text("devices", place)
        if isinstance(place, str)
        else sharding_text(eqn, "devices", place)
    )
    alias = ", may_alias=True" if "ALIAS" in str(eqn.take("copy_semantics")) else ""
    return f"jax.device_put({eqn.texts[0]}, {said}{alias})"


RULES: Final[dict[str, Rule]] = {
    **dict.fromkeys(("psum", "psum2", "psum_invariant", "pmax", "pmin"), _reduction),
    **dict.fromkeys(("pvary", "pcast", "pbroadcast"), _varying),
    **dict.fromkeys(("all_gather", "all_gather_invariant"), _all_gather),
    "all_to_all": _all_to_all,
    "axis_index": _axis_index,
    "device_put": _device_put,
    "mesh_cast": _reshard,
    "ppermute": _permute,
    "reduce_scatter": _reduce_scatter,
    "reshard": _reshard,
    "shard_map": _shard_map,
    "sharding_constraint": _constraint,
}
"""How each of these primitives is said."""
