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
    from collections.abc import Iterable, Iterator, Mapping

    from conformance.triage.repro.source import Source

ATTRIBUTES: Final = (
    "compile_only", "cell", "devices", "mesh", "put", "rng", "lower", "compile", "values",
    "unsupported",
)  # fmt: skip
COMPAT: Final = (
    "shard_map", "pvary", "axis_size", "typeof", "make_mesh", "set_mesh", "enable_x64",
    "compute_on",
)  # fmt: skip
_NEEDS: Final = {
    "mesh": ("devices",), "lower": ("devices",),
}  # fmt: skip


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
    parts = [name for name in ATTRIBUTES if name in used]
    compat = [name for name in COMPAT if f"compat.{name}" in used]
    unknown = used - set(ATTRIBUTES) - {f"compat.{name}" for name in COMPAT}
    found = [_attribute(name, source, place) for name in parts]
    lines = ["class Env:", f'    """What the program asks for, in terms of jax {place.release}."""']
    if compat:
        lines += ["", "    class compat:"]
        pieces = [_compat(name, place) for name in compat]
        lines.append("\n\n".join(_indented(piece.text, 8) for piece in pieces))
        found_imports = [line for piece in pieces for line in piece.imports]
    else:
        found_imports = []
    for piece in found:
        lines += ["", _indented(piece.text, 4)]
        found_imports += piece.imports
    lines += [f"    # not known to have a plain form: {name}" for name in sorted(unknown)]
    return Piece("\n".join(lines), tuple(found_imports))


def _used(env: frozenset[str]) -> set[str]:
    if EVERYTHING in env:
        return {*ATTRIBUTES, *(f"compat.{name}" for name in COMPAT)}
    return set(env) | {needed for name in env for needed in _NEEDS.get(name, ())}


def _indented(text: str, by: int) -> str:
    return "\n".join(f"{' ' * by}{line}" if line else "" for line in text.splitlines())


def _attribute(name: str, source: Source, place: Place) -> Piece:
    """Return one attribute of the surroundings."""
    if name == "cell":
        return Piece(_cell(place), ("import types",))
    if name == "devices":
        return _devices(place)
    if name == "mesh":
        explicit = bool({"explicit", EVERYTHING} & source.keywords) or EVERYTHING in source.env
        return Piece(_mesh(place, explicit=explicit), ("import math", "import numpy as np"))
    if name == "put":
        return _put(place)
    if name == "rng":
        text = "def rng(self, seed=0):\n    return np.random.default_rng(seed)"
        return Piece(text, ("import numpy as np",))
    return Piece({
        "compile_only": f"compile_only = {bool(place.topology)}",
        "lower": f"def lower(self, traced):\n{_indented(lowering(place, 'self'), 4)}",
        "compile": _COMPILE,
        "values": "def values(self, tree):\n    return tree",
        "unsupported": (
            "def unsupported(self, reason):\n"
            f'    raise NotImplementedError(f"{place.id}: {{reason}}")'
        ),
    }[name])  # fmt: skip


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
    more, chosen = "", ""
    if explicit:
        more = ", *, explicit=False"
        chosen = "\n    kind = jax.sharding.AxisType.Explicit if explicit else " + kind
        kind = "kind"
    if not place.since("0.5.3"):
        chosen = (
            f'\n    if explicit:\n        raise NotImplementedError("jax {place.release} has no '
            'explicit mesh axes")'
            if explicit
            else ""
        )
        made = "    return jax.sharding.Mesh(devices, names)"
    else:
        made = (
            f"    types = ({kind},) * len(names)\n"
            "    return jax.sharding.Mesh(devices, names, axis_types=types)"
        )
    return (
        f"def mesh(self, shape, names{more}):\n"
        "    shape = (shape,) if isinstance(shape, int) else tuple(shape)\n"
        "    names = (names,) if isinstance(names, str) else tuple(names)\n"
        f"    devices = np.array(self.devices[: math.prod(shape)]).reshape(shape){chosen}\n"
        f"{made}"
    )


def _put(place: Place) -> Piece:
    if not place.topology:
        return Piece("def put(self, value, sharding):\n    return jax.device_put(value, sharding)")
    text = (
        "def put(self, value, sharding):\n"
        "    dtype = jax.dtypes.canonicalize_dtype(np.asarray(value).dtype)\n"
        "    return jax.ShapeDtypeStruct(np.shape(value), dtype, sharding=sharding)"
    )
    return Piece(text, ("import numpy as np",))


def _compat(name: str, place: Place) -> Piece:
    arguments, body, imports = _SPELLINGS[name](place)
    return Piece(f"@staticmethod\ndef {name}({arguments}):\n{_indented(body, 4)}", imports)


Spelling = tuple[str, str, tuple[str, ...]]


_SHARD_MAP: Final = """\
manual = {} if axis_names is None else {"axis_names": set(axis_names)}
return jax.shard_map(
    f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check, **manual
)"""
_EXPERIMENTAL_SHARD_MAP: Final = """\
auto = frozenset(mesh.axis_names) - set(axis_names or mesh.axis_names)
return shard_map(f, mesh, in_specs, out_specs, check_rep=check, auto=auto)"""


def _shard_map(place: Place) -> Spelling:
    arguments = "f, *, mesh, in_specs, out_specs, check=True, axis_names=None"
    if place.since("0.6.1"):
        return (
            arguments,
            _SHARD_MAP,
            (),
        )
    return (
        arguments,
        _EXPERIMENTAL_SHARD_MAP,
        ("from jax.experimental.shard_map import shard_map",),
    )


def _pvary(place: Place) -> Spelling:
    names = "names = (axes,) if isinstance(axes, str) else tuple(axes)\n"
    each = f"{names}return jax.tree.map(lambda leaf: %s, x)"
    if place.since("0.8.2"):
        return "x, axes", each % 'jax.lax.pcast(leaf, names, to="varying")', ()
    if place.since("0.6.0"):
        return "x, axes", f"{names}return jax.lax.pvary(x, names)", ()
    imports = ("from jax.experimental.shard_map import pbroadcast",)
    return "x, axes", each % "pbroadcast(leaf, names)", imports


def _axis_size(place: Place) -> Spelling:
    call = "jax.lax.axis_size(name)" if place.since("0.6.1") else "jax.lax.psum(1, name)"
    return "name", f"return int({call})", ()


def _typeof(place: Place) -> Spelling:
    return "x", f"return jax.{'typeof' if place.since('0.5.3') else 'core.get_aval'}(x)", ()


def _make_mesh(place: Place) -> Spelling:
    arguments = "shape, names, *, devices, explicit=False"
    head = "devices, names = devices.reshape(tuple(shape)), tuple(names)\n"
    if not place.since("0.5.3"):
        return arguments, f"{head}return jax.sharding.Mesh(devices, names)", ()
    kind = "jax.sharding.AxisType.Explicit if explicit else jax.sharding.AxisType.Auto"
    last = "return jax.sharding.Mesh(devices, names, axis_types=types)"
    return arguments, f"{head}kind = {kind}\ntypes = (kind,) * len(names)\n{last}", ()


def _set_mesh(place: Place) -> Spelling:
    if place.since("0.7.1"):
        return "mesh", "return jax.set_mesh(mesh)", ()
    return "mesh", f"return {'jax.sharding.use_mesh(mesh)' if place.since('0.5.0') else 'mesh'}", ()


def _enable_x64(place: Place) -> Spelling:
    if place.since("0.8.0"):
        return "value=True", "return jax.enable_x64(value)", ()
    return "value=True", "return enable_x64(value)", ("from jax.experimental import enable_x64",)


def _compute_on(place: Place) -> Spelling:
    imports = ("from jax.experimental.compute_on import compute_on",)
    body = "return compute_on(where)(f)"
    if place.since("0.11.1"):
        body = "device = jax.memory.Space.Device\n"
        body += "return compute_on(f, compute_type=where, out_memory_spaces=device)"
    return 'f, where="device_host"', body, imports


_SPELLINGS: Final = {
    "shard_map": _shard_map,
    "pvary": _pvary,
    "axis_size": _axis_size,
    "typeof": _typeof,
    "make_mesh": _make_mesh,
    "set_mesh": _set_mesh,
    "enable_x64": _enable_x64,
    "compute_on": _compute_on,
}


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
