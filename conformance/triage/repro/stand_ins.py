"""Plain JAX in place of the kit: `env`, `env.compat`, `Program` and others, from templates.

A reproduction is written for one release, so each piece uses the names of that release.
`conformance.kit.compat` instead chooses between names by the release that it runs on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from textwrap import indent
from typing import TYPE_CHECKING, Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from packaging.version import Version

from conformance.triage.repro.case_source import EVERYTHING
from conformance.triage.repro.layout import format_literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from conformance.triage.repro.case_source import CaseSource

ATTRIBUTES: Final = (
    "compile_only", "cell", "devices", "mesh", "put", "rng", "lower", "compile", "values",
    "unsupported",
)  # fmt: skip
COMPAT: Final = (
    "shard_map", "pvary", "axis_size", "typeof", "make_mesh", "set_mesh", "enable_x64",
    "compute_on",
)  # fmt: skip
_PIECES: Final = "pieces.py.j2"
_MAIN: Final = "main.py.j2"
_IMPORTS: Final = {
    r"\bnp\.": "import numpy as np",
    r"\bjnp\.": "import jax.numpy as jnp",
    r"\bmath\.": "import math",
    r"\btypes\.": "import types",
    r"\bfunctools\.": "import functools",
    r"\btopologies\.": "from jax.experimental import topologies",
    r"\bNamedTuple\b": "from typing import NamedTuple",
    r"\bre\.": "import re",
    r"\bCounter\(": "from collections import Counter",
    r"\btempfile\.": "import tempfile",
    r"\bPath\(": "from pathlib import Path",
    r"\bfaulthandler\.": "import faulthandler",
    r"return shard_map\(": "from jax.experimental.shard_map import shard_map",
    r"\bpbroadcast\(": "from jax.experimental.shard_map import pbroadcast",
    r"return enable_x64\(": "from jax.experimental import enable_x64",
    r"return compute_on\(": "from jax.experimental.compute_on import compute_on",
}
"""Imports by the pattern of code that needs them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellSurroundings:
    """The properties of a cell that a program can see.

    Attributes:
        id: Cell id.
        release: jax release.
        platform: Platform.
        versions: Version by package.
        topology: Arguments of `get_topology_desc`; empty for a cell that runs programs.
    """

    id: str
    release: str
    platform: str
    versions: Mapping[str, str]
    topology: Mapping[str, Any]

    @property
    def compile_only(self) -> bool:
        """Whether programs are compiled only."""
        return bool(self.topology)

    def since(self, release: str) -> bool:
        """Return whether the release of the cell is at least another."""
        return Version(self.release).release >= Version(release).release


def render_kit(source: CaseSource) -> Iterator[str]:
    """Yield stand-ins for the types of the kit that a case uses."""
    fields = {
        f"has_{name}": bool({name, EVERYTHING} & source.keywords)
        for name in ("kwargs", "jit", "artifacts")
    }
    raises = "raises" in source.kit
    # `raises` returns a `Raises`.
    for name in ("Program", "Observed", "Raises", "CaseError"):
        if name in source.kit or (name == "Raises" and raises):
            yield render_piece(f"kit_{name}", has_raises=raises, **fields)


def render_env(source: CaseSource, place: CellSurroundings, *, is_program: bool) -> str:
    """Return a class in place of `env`, with the attributes that a case uses.

    Args:
        source: The case.
        place: The cell.
        is_program: Whether the case is a program, which the file itself lowers.
    """
    everything = EVERYTHING in source.env
    used = {*ATTRIBUTES, *(f"compat.{name}" for name in COMPAT)} if everything else {*source.env}
    if used & {"mesh", "lower"} or (is_program and place.compile_only):
        # These pieces call `devices` themselves.
        used.add("devices")
    explicit = everything or bool({"explicit", EVERYTHING} & source.keywords)
    lines = [
        "class Env:",
        f'    """The environment of the program, by functions of jax {place.release}."""',
    ]
    compat = [name for name in COMPAT if f"compat.{name}" in used]
    if compat:
        texts = (f"@staticmethod\n{render_piece(f'compat_{name}', place=place)}" for name in compat)
        lines += ["", "    class compat:", indent("\n\n".join(texts), " " * 8)]
    for name in ATTRIBUTES:
        if name in used:
            text = render_piece(f"env_{name}", place=place, explicit=explicit)
            lines += ["", indent(text, " " * 4)]
    unknown = used - {*ATTRIBUTES, *(f"compat.{name}" for name in COMPAT)}
    # A reader can replace it; the command also reports that the file fails.
    lines += [f"    # not known to have a plain form: {name}" for name in sorted(unknown)]
    return "\n".join(lines)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("conformance.triage.repro"), undefined=StrictUndefined,
        # By the name of the template: Python is not escaped, since `.py.j2` is no HTML.
        autoescape=select_autoescape(), trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters.update(format_literal=format_literal, repr=repr)
    return environment


def render_piece(name: str, **values: Any) -> str:
    """Return a piece of code.

    Args:
        name: Name of its block in the template.
        values: Variables of the block.
    """
    template = _environment().get_template(_PIECES)
    # Only one block is rendered, so that one template holds all pieces.
    return "".join(template.blocks[name](template.new_context(values))).strip("\n")


def render_main(**values: Any) -> str:
    """Return the statements of `main`, not indented.

    Args:
        values: Variables of the template.
    """
    return _environment().get_template(_MAIN).render(values).strip("\n")


def find_imports(text: str) -> list[str]:
    """Return the imports that a rendered text needs.

    Args:
        text: Python that was written from templates.
    """
    # Found in the text, so that no piece has to declare its imports.
    return [line for pattern, line in _IMPORTS.items() if re.search(pattern, text)]
