"""The case file of a search: its cases run the text of another one, which is their parameter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

DRIVER: Final = '''\
"""Runs the text of a case file."""
import contextlib
import dataclasses
import sys
import types

import jax
from conformance.kit import probe, program

{imports}

def run(env, text, name):
    module = types.ModuleType("candidate")
    sys.modules["candidate"] = module
    exec(compile(text, "candidate.py", "exec", dont_inherit=True), module.__dict__)
    built = getattr(module, name)(env)
    # On platform "cpu" the worker also lowers for other platforms, which no criterion needs.
    env.cell = dataclasses.replace(env.cell, platform=env.cell.platform + "-candidate")
    return built


candidate_program = program()(run)
candidate_probe = probe()(run)
'''


def render_driver(imports: Iterable[str]) -> str:
    """Return the text of the driver of a search.

    Args:
        imports: Statements that import what the case needs, so that the worker has it already.
    """
    # An import that fails must not break the driver; candidates import it again.
    guarded = (f"with contextlib.suppress(Exception):\n    {line}\n" for line in imports)
    return DRIVER.format(imports="".join(guarded))
