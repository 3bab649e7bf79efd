"""The templates of one-file reproductions, and the imports that a text written from them needs."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from conformance.triage.repro.layout import format_literal

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
"""Imports by what shows that a text of ours needs them."""


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("conformance.triage.repro"), undefined=StrictUndefined,
        autoescape=select_autoescape(), trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    made.filters.update(format_literal=format_literal, repr=repr)
    return made


def render_piece(name: str, **values: Any) -> str:
    """Return a piece of code.

    Args:
        name: Name of its block in the template.
        values: What the block is filled in with.
    """
    template = _environment().get_template(_PIECES)
    return "".join(template.blocks[name](template.new_context(values))).strip("\n")


def render_main(**values: Any) -> str:
    """Return the statements of `main`, not indented.

    Args:
        values: What the template is filled in with.
    """
    return _environment().get_template(_MAIN).render(values).strip("\n")


def imports_in(text: str) -> list[str]:
    """Return the imports that a text of ours needs.

    Args:
        text: Python that was written from templates.
    """
    return [line for pattern, line in _IMPORTS.items() if re.search(pattern, text)]
