"""A jaxpr as readable JAX code: an equivalent function that uses only the public API of jax.

Each equation is one statement. A called jaxpr is a function; functions of packages, such as
`jnp.where`, and functions with derivative rules are inlined. Meshes, and functions whose names
differ between releases, come from `env`, as in a case. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from packaging.version import Version

from conformance.ir.jaxpr.document import decode
from conformance.triage.jaxpr_code import arrays, control, sharding
from conformance.triage.jaxpr_code.literals import render_items
from conformance.triage.jaxpr_code.program import UnsupportedJaxprError, WrittenProgram
from conformance.triage.jaxpr_code.template import fill
from conformance.triage.jaxpr_code.writer import FunctionBody

LETTERS = ("x", "y", "z", "u", "v", "w")


@dataclass(frozen=True, slots=True, kw_only=True)
class JaxprCode:
    """A program as code.

    Attributes:
        name: Name of its function.
        parameters: Names of the parameters, one for each input of the jaxpr.
        statements: Texts of the meshes and the functions, its own last; they read `env` and the
            names of `conformance.triage.jaxpr_code.literals.IMPORTS`.
    """

    name: str
    parameters: tuple[str, ...]
    statements: tuple[str, ...]


def render_jaxpr(document: bytes, *, release: str, name: str = "f") -> JaxprCode:
    """Return a jaxpr as code.

    Args:
        document: A jaxpr as written by `conformance.worker.jaxprs`.
        release: The jax release that traced it, and for which the code is written.
        name: Name for the function.

    Returns:
        The code; traced by that release it gives the jaxpr again, without unread results.

    Raises:
        IrSyntaxError: If it is not a valid document.
        UnsupportedJaxprError: If public functions cannot express all of it.
    """
    # Python spells bytes of a file name that are not UTF-8 by half a surrogate pair.
    read = decode(document.decode("utf-8", "surrogatepass"))
    if any(isinstance(size, str) for aval in read.avals for size in aval.shape):
        raise UnsupportedJaxprError("shape", "of symbolic dimensions")
    table = {**arrays.RULES, **control.RULES, **sharding.RULES}
    rules = {
        name: partial(fill, template=rule) if isinstance(rule, str) else rule
        for name, rule in table.items()
    }
    program, entry = WrittenProgram(read, Version(release).release, rules), read.jaxprs[0]
    # Before the parameters, so that none of them takes the name.
    name, count = program.names.reserve(name), len(entry.inputs)
    hints = LETTERS[:count] if count <= len(LETTERS) else ["x"] * count
    variables = program.make_variables(entry.inputs, hints)
    parameters = [value.text for value in variables]
    body = FunctionBody(program)
    body.write_function(
        name, parameters,
        lambda inner: render_items([v.text for v in inner.write_equations(entry, variables)]), "",
    )  # fmt: skip
    # Functions precede the function that calls them.
    functions = [*program.functions, "\n".join(body.lines)]
    return JaxprCode(
        name=name, parameters=tuple(parameters),
        statements=(*program.render_meshes(), *functions),
    )  # fmt: skip
