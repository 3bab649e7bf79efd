"""What reads what in a jaxpr: its variables are numbered, constants first, then inputs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.ir.jaxpr.document import Aval, Eqn, Jaxpr

LITERAL: Final = -1


def atoms_of(eqn: Eqn) -> list[int]:
    """Return the variables that an equation reads, `LITERAL` in place of literals."""
    return [atom if isinstance(atom, int) else LITERAL for atom in eqn.inputs]


def uses_of(jaxpr: Jaxpr) -> Counter[int]:
    """Return how often each variable is read."""
    uses = Counter(atom for eqn in jaxpr.eqns for atom in atoms_of(eqn))
    uses.update(atom for atom in jaxpr.out if isinstance(atom, int))
    return uses


def types_of(jaxpr: Jaxpr) -> list[int]:
    """Return for each variable the number of its aval."""
    made = (aval for eqn in jaxpr.eqns for aval in eqn.outputs)
    return [*(one.aval for one in jaxpr.consts), *jaxpr.inputs, *made]


def makers_of(jaxpr: Jaxpr) -> dict[int, int]:
    """Return for each variable that an equation makes the position of the equation."""
    makers: dict[int, int] = {}
    count = len(jaxpr.consts) + len(jaxpr.inputs)
    for position, eqn in enumerate(jaxpr.eqns):
        for _ in eqn.outputs:
            makers[count] = position
            count += 1
    return makers


def dead(jaxpr: Jaxpr) -> set[int]:
    """Return the positions of equations that nothing comes of."""
    makers, live = makers_of(jaxpr), set()
    read = {atom for atom in jaxpr.out if isinstance(atom, int)}
    made = {position: variable for variable, position in makers.items()}
    for position in reversed(range(len(jaxpr.eqns))):
        eqn = jaxpr.eqns[position]
        last = made.get(position, LITERAL)
        results = range(last - len(eqn.outputs) + 1, last + 1)
        if eqn.params.get("ctx effects") or not read.isdisjoint(results):
            live.add(position)
            read.update(atoms_of(eqn))
    return set(range(len(jaxpr.eqns))) - live


def selectors(jaxpr: Jaxpr, avals: Sequence[Aval]) -> set[int]:
    """Return the positions of equations that a choice between branches makes by itself.

    `lax.cond` makes a number of its predicate, `lax.switch` brings its index within bounds, and
    `lax.platform_dependent` asks for the platform: where nothing else reads what they make.
    """
    makers, uses = makers_of(jaxpr), uses_of(jaxpr)
    choices = [eqn for eqn in jaxpr.eqns if eqn.primitive == "cond"]
    counts = Counter(atoms_of(eqn)[0] for eqn in choices)
    types = types_of(jaxpr)
    found: set[int] = set()
    for choice in choices:
        atom = atoms_of(choice)[0]
        if atom not in makers or uses[atom] != counts[atom]:
            continue
        made, branches = jaxpr.eqns[makers[atom]], len(choice.params["branches"])
        read = atoms_of(made)
        true = is_predicate(made) and read[0] != LITERAL and avals[types[read[0]]].dtype == "bool"
        if asks_platform(made) or (true and branches == 2):  # noqa: PLR2004
            found.add(makers[atom])
        elif is_bounded(made, branches):
            found.add(makers[atom])
            asked = makers.get(read[1])
            if asked is not None and uses[read[1]] == 1 and asks_platform(jaxpr.eqns[asked]):
                found.add(asked)
    return found


def is_predicate(eqn: Eqn) -> bool:
    """Say whether an equation may be what makes a number of a predicate."""
    return eqn.primitive == "convert_element_type"


def is_bounded(eqn: Eqn, branches: int) -> bool:
    """Say whether an equation brings an index within the bounds of some branches."""
    if eqn.primitive != "clamp":
        return False
    low, _, high = eqn.inputs
    if isinstance(low, int) or isinstance(high, int):
        return False
    return bool(low.value == 0 and high.value == branches - 1)


def asks_platform(eqn: Eqn) -> bool:
    """Say whether an equation asks for what platform it is lowered."""
    return eqn.primitive == "platform_index"
