"""Plain JAX for what a case asks of the kit: `env`, `env.compat`, `Program` and the like.

A file of its own is written for one release, so that each piece is what that very release spells
(`conformance.kit.compat` bridges the same changes by looking at what is there).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from packaging.version import Version

from conformance.triage.repro.source import EVERYTHING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from conformance.triage.repro.source import Source

ATTRIBUTES: Final = (
    "compile_only", "cell", "devices", "mesh", "put", "rng", "lower", "compile", "values",
    "unsupported",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What a cell is, as far as its surroundings show it.

    Attributes:
        id: Cell id.
        release: jax release.
        platform: Platform.
        versions: Version by package.
        topology: Arguments of `get_topology_desc`; empty where programs run.
    """

    id: str
    release: str
    platform: str
    versions: Mapping[str, str]
    topology: Mapping[str, Any]

    def since(self, release: str) -> bool:
        """Say whether the cell's release has what came with another."""
        return Version(self.release).release >= Version(release).release


@dataclass(frozen=True, slots=True)
class Piece:
    """Some code with the imports it needs."""

    text: str
    imports: tuple[str, ...] = ()


def kit_pieces(source: Source) -> Iterator[Piece]:
    """Yield stand-ins for what is used of the kit's vocabulary."""
    if "Program" in source.kit:
        yield _tuple("Program", ("fn", "args=()", "kwargs={}", "reference=None", "jit={}"), source)
    if "Observed" in source.kit:
        yield _tuple("Observed", ("value", "reference=None", "artifacts={}"), source)
    if source.kit & {"raises", "Raises"}:
        last = "\n\n\nraises = Raises" if "raises" in source.kit else ""
        named = 'class Raises(NamedTuple):\n    type: str\n    match: str = ""'
        yield Piece(named + last, ("from typing import NamedTuple",))
    if "CaseError" in source.kit:
        yield Piece('class CaseError(Exception):\n    """The program is not what it should be."""')


def _tuple(name: str, fields: Iterable[str], source: Source) -> Piece:
    lines = [f"class {name}(NamedTuple):"]
    for field in fields:
        label, _, default = field.partition("=")
        wanted = label in source.keywords or EVERYTHING in source.keywords
        if default and not wanted and label not in {"args", "reference"}:
            continue
        lines.append(f"    {label}: object" + (f" = {default}" if default else ""))
    return Piece("\n".join(lines), ("from typing import NamedTuple",))


def env_piece(source: Source, place: Place, *, runs: bool) -> Piece:
    """Return the class that stands for `env`, of what is used of it.

    Args:
        source: The case.
        place: The cell.
        runs: Whether the file itself lowers for the devices.
    """
    used = _used(source.env)
    if runs and place.topology:
        used |= {"devices"}
    compat = [_compat(name, place) for name in _COMPAT if f"compat.{name}" in used]
    attributes = [_attribute(name, source, place) for name in ATTRIBUTES if name in used]
    lines = ["class Env:", f'    """What the program asks for, in terms of jax {place.release}."""']
    if compat:
        lines += ["", "    class compat:", "\n\n".join(_indented(one.text, 8) for one in compat)]
    for one in attributes:
        lines += ["", _indented(one.text, 4)]
    unknown = used - {*ATTRIBUTES, *(f"compat.{name}" for name in _COMPAT)}
    lines += [f"    # not known to have a plain form: {name}" for name in sorted(unknown)]
    imports = (line for one in (*compat, *attributes) for line in one.imports)
    return Piece("\n".join(lines), tuple(imports))


def _used(env: frozenset[str]) -> set[str]:
    if EVERYTHING in env:
        return {*ATTRIBUTES, *(f"compat.{name}" for name in _COMPAT)}
    return set(env) | ({"devices"} if env & {"mesh", "lower"} else set())


def _indented(text: str, by: int) -> str:
    return "\n".join(f"{' ' * by}{line}" if line else "" for line in text.splitlines())


def _attribute(name: str, source: Source, place: Place) -> Piece:
    """Return one attribute of the surroundings."""
    if name == "mesh":
        explicit = bool({"explicit", EVERYTHING} & source.keywords) or EVERYTHING in source.env
        return Piece(_mesh(place, explicit=explicit), ("import math", "import numpy as np"))
    if name == "devices":
        return _devices(place)
    return {
        "compile_only": Piece(f"compile_only = {bool(place.topology)}"),
        "cell": Piece(_cell(place), ("import types",)),
        "put": Piece(_PUT_SHAPE, ("import numpy as np",)) if place.topology else Piece(_PUT),
        "rng": Piece(_RNG, ("import numpy as np",)),
        "lower": Piece(f"def lower(self, traced):\n{_indented(lowering(place, 'self'), 4)}"),
        "compile": Piece(_COMPILE),
        "values": Piece("def values(self, tree):\n    return tree"),
        "unsupported": Piece(_UNSUPPORTED.replace("CELL", place.id)),
    }[name]


_RNG: Final = """\
def rng(self, seed=0):
    return np.random.default_rng(seed)"""
_PUT: Final = """\
def put(self, value, sharding):
    return jax.device_put(value, sharding)"""
_PUT_SHAPE: Final = """\
def put(self, value, sharding):
    dtype = jax.dtypes.canonicalize_dtype(np.asarray(value).dtype)
    return jax.ShapeDtypeStruct(np.shape(value), dtype, sharding=sharding)"""
_UNSUPPORTED: Final = """\
def unsupported(self, reason):
    raise NotImplementedError(f"CELL: {reason}")"""
_COMPILE: Final = """\
def compile(self, lowered, options=None):
    return lowered.compile(compiler_options=options) if options else lowered.compile()"""


def lowering(place: Place, env: str) -> str:
    """Return statements that lower `traced` and return it."""
    if not place.topology:
        return "return traced.lower()"
    return f"with jax.default_device({env}.devices[0]):\n    return traced.lower()"


def _cell(place: Place) -> str:
    fields = {"id": place.id, "release": place.release, "platform": place.platform}
    lines = [f"    {name}={quoted(value)}," for name, value in fields.items()]
    lines.append("    versions={")
    lines += [f"        {quoted(n)}: {quoted(v)}," for n, v in sorted(place.versions.items())]
    return "\n".join(["cell = types.SimpleNamespace(", *lines, "    },", ")"])


def _devices(place: Place) -> Piece:
    if not place.topology:
        text = (
            "@property\ndef devices(self):\n"
            "    return sorted(jax.devices(), key=lambda device: device.id)"
        )
        return Piece(text, ("import jax",))
    arguments = []
    for name, value in place.topology.items():
        told = "TARGET" if name == "target_config" else quoted(value)
        arguments.append(f"        {name}={told},")
    text = "\n".join((
        "@functools.cached_property", "def devices(self):",
        "    described = topologies.get_topology_desc(", *arguments, "    )",
        "    return sorted(described.devices, key=lambda device: device.id)",
    ))  # fmt: skip
    return Piece(text, ("import functools", "from jax.experimental import topologies"))


def _mesh(place: Place, *, explicit: bool) -> str:
    kind = "jax.sharding.AxisType.Auto"
    chosen, made = "", "jax.sharding.Mesh(devices, names)"
    if place.since("0.5.3"):
        if explicit:
            chosen = f"    kind = jax.sharding.AxisType.Explicit if explicit else {kind}\n"
            kind = "kind"
        chosen += f"    types = ({kind},) * len(names)\n"
        made = "jax.sharding.Mesh(devices, names, axis_types=types)"
    elif explicit:
        refused = f"jax {place.release} has no explicit mesh axes"
        chosen = f'    if explicit:\n        raise NotImplementedError("{refused}")\n'
    return (
        f"def mesh(self, shape, names{', *, explicit=False' if explicit else ''}):\n"
        "    shape = (shape,) if isinstance(shape, int) else tuple(shape)\n"
        "    names = (names,) if isinstance(names, str) else tuple(names)\n"
        "    devices = np.array(self.devices[: math.prod(shape)]).reshape(shape)\n"
        f"{chosen}    return {made}"
    )


def _compat(name: str, place: Place) -> Piece:
    """Return one function of `env.compat`, as the release spells it."""
    arguments, spellings = _COMPAT[name]
    body, imports = next(found for since, *found in spellings if place.since(since))
    return Piece(f"@staticmethod\ndef {name}({arguments}):\n{_indented(body, 4)}", imports)


_NAMES: Final = "names = (axes,) if isinstance(axes, str) else tuple(axes)\n"
_MESH_OF_DEVICES: Final = "devices, names = devices.reshape(tuple(shape)), tuple(names)\n"
_COMPAT: Final[Mapping[str, tuple[str, Sequence[tuple[str, str, tuple[str, ...]]]]]] = {
    "shard_map": ("f, *, mesh, in_specs, out_specs, check=True, axis_names=None", [
        ("0.6.1", """\
manual = {} if axis_names is None else {"axis_names": set(axis_names)}
return jax.shard_map(
    f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check, **manual
)""", ()),
        ("0", """\
auto = frozenset(mesh.axis_names) - set(axis_names or mesh.axis_names)
return shard_map(f, mesh, in_specs, out_specs, check_rep=check, auto=auto)""",
         ("from jax.experimental.shard_map import shard_map",)),
    ]),
    "pvary": ("x, axes", [
        ("0.8.2", f"""\
{_NAMES}return jax.tree.map(lambda leaf: jax.lax.pcast(leaf, names, to="varying"), x)""", ()),
        ("0.6.0", f"{_NAMES}return jax.lax.pvary(x, names)", ()),
        ("0", f"{_NAMES}return jax.tree.map(lambda leaf: pbroadcast(leaf, names), x)",
         ("from jax.experimental.shard_map import pbroadcast",)),
    ]),
    "axis_size": ("name", [
        ("0.6.1", "return int(jax.lax.axis_size(name))", ()),
        ("0", "return int(jax.lax.psum(1, name))", ()),
    ]),
    "typeof": ("x", [
        ("0.5.3", "return jax.typeof(x)", ()), ("0", "return jax.core.get_aval(x)", ()),
    ]),
    "make_mesh": ("shape, names, *, devices, explicit=False", [
        ("0.5.3", f"""\
{_MESH_OF_DEVICES}kind = jax.sharding.AxisType.Explicit if explicit else jax.sharding.AxisType.Auto
types = (kind,) * len(names)
return jax.sharding.Mesh(devices, names, axis_types=types)""", ()),
        ("0", f"{_MESH_OF_DEVICES}return jax.sharding.Mesh(devices, names)", ()),
    ]),
    "set_mesh": ("mesh", [
        ("0.7.1", "return jax.set_mesh(mesh)", ()),
        ("0.5.0", "return jax.sharding.use_mesh(mesh)", ()),
        ("0", "return mesh", ()),
    ]),
    "enable_x64": ("value=True", [
        ("0.8.0", "return jax.enable_x64(value)", ()),
        ("0", "return enable_x64(value)", ("from jax.experimental import enable_x64",)),
    ]),
    "compute_on": ('f, where="device_host"', [
        ("0.11.1", """\
device = jax.memory.Space.Device
return compute_on(f, compute_type=where, out_memory_spaces=device)""",
         ("from jax.experimental.compute_on import compute_on",)),
        ("0", "return compute_on(where)(f)",
         ("from jax.experimental.compute_on import compute_on",)),
    ]),
}  # fmt: skip
"""The functions of `env.compat`: parameters, and bodies with imports, newest release first."""


def quoted(value: object) -> str:
    """Return a literal as `ruff format` spells it: text in double quotes where that is simpler."""
    if isinstance(value, str):
        plain = repr(value)
        if plain.startswith("'") and '"' not in value:
            return f'"{plain[1:-1]}"'
        return plain
    if isinstance(value, dict):
        return "{" + ", ".join(f"{quoted(k)}: {quoted(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(quoted, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(quoted, value))}{',' if len(value) == 1 else ''})"
    return repr(value)
