"""Plain JAX for what a case asks of the kit: `env`, `env.compat`, `Program` and the like.

A file of its own is written for one release, so that each piece is what that very release spells
(`conformance.kit.compat` bridges the same changes by looking at what is there).
"""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import indent
from typing import TYPE_CHECKING, Any, Final

from packaging.version import Version

from conformance.triage.repro.source import EVERYTHING
from conformance.triage.repro.templates import render_piece

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from conformance.triage.repro.source import CaseSource

ATTRIBUTES: Final = (
    "compile_only", "cell", "devices", "mesh", "put", "rng", "lower", "compile", "values",
    "unsupported",
)  # fmt: skip
COMPAT: Final = (
    "shard_map", "pvary", "axis_size", "typeof", "make_mesh", "set_mesh", "enable_x64",
    "compute_on",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class CellSurroundings:
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

    @property
    def compile_only(self) -> bool:
        """Whether programs are compiled, and not run."""
        return bool(self.topology)

    def since(self, release: str) -> bool:
        """Say whether the cell's release has what came with another."""
        return Version(self.release).release >= Version(release).release


def kit_code(source: CaseSource) -> Iterator[str]:
    """Yield stand-ins for what is used of the kit's vocabulary."""
    fields = {
        f"has_{name}": bool({name, EVERYTHING} & source.keywords)
        for name in ("kwargs", "jit", "artifacts")
    }
    raises = "raises" in source.kit
    for name in ("Program", "Observed", "Raises", "CaseError"):
        if name in source.kit or (name == "Raises" and raises):
            yield render_piece(f"kit_{name}", has_raises=raises, **fields)


def env_code(source: CaseSource, place: CellSurroundings, *, runs: bool) -> str:
    """Return the class that stands for `env`, of what is used of it.

    Args:
        source: The case.
        place: The cell.
        runs: Whether the file itself lowers for the devices.
    """
    everything = EVERYTHING in source.env
    used = {*ATTRIBUTES, *(f"compat.{name}" for name in COMPAT)} if everything else {*source.env}
    if used & {"mesh", "lower"} or (runs and place.compile_only):
        used.add("devices")
    explicit = everything or bool({"explicit", EVERYTHING} & source.keywords)
    lines = ["class Env:", f'    """What the program asks for, in terms of jax {place.release}."""']
    compat = [name for name in COMPAT if f"compat.{name}" in used]
    if compat:
        texts = (f"@staticmethod\n{render_piece(f'compat_{one}', place=place)}" for one in compat)
        lines += ["", "    class compat:", indent("\n\n".join(texts), " " * 8)]
    for name in ATTRIBUTES:
        if name in used:
            text = render_piece(f"env_{name}", place=place, explicit=explicit)
            lines += ["", indent(text, " " * 4)]
    unknown = used - {*ATTRIBUTES, *(f"compat.{name}" for name in COMPAT)}
    lines += [f"    # not known to have a plain form: {name}" for name in sorted(unknown)]
    return "\n".join(lines)
