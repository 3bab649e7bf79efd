"""The dataflow of a jaxpr; its variables are numbered: constants, inputs, then results."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.ir.jaxpr.document import Atom, Aval, Eqn, Jaxpr

_PREDICATE_BRANCHES: Final = 2
"""Branches of `lax.cond`; a switch of two branches has no conversion from bool."""


class Selector(NamedTuple):
    """The operand that selects a branch of `cond`.

    Attributes:
        atom: An index, or a boolean if the user wrote a predicate.
        is_predicate: Whether the atom is a boolean.
        platforms: The equation of the platform index, if that selects the branch.
    """

    atom: Atom
    is_predicate: bool = False
    platforms: Eqn | None = None


class Dataflow:
    """The variables that equations read, and the equations that the results depend on.

    Args:
        jaxpr: The jaxpr.
        avals: The types that it refers to.

    Attributes:
        results: Numbers of the results of each equation.
        read: Numbers of the variables that necessary equations, or the results, read.
    """

    def __init__(self, jaxpr: Jaxpr, avals: Sequence[Aval]) -> None:
        made = (number for eqn in jaxpr.eqns for number in eqn.outputs)
        self._types = [*(one.aval for one in jaxpr.consts), *jaxpr.inputs, *made]
        self._avals = avals
        ends = [len(jaxpr.consts) + len(jaxpr.inputs)]
        for eqn in jaxpr.eqns:
            ends.append(ends[-1] + len(eqn.outputs))
        self.results = [range(start, end) for start, end in pairwise(ends)]
        pairs = list(zip(self.results, jaxpr.eqns, strict=True))
        self._makers = {number: eqn for results, eqn in pairs for number in results}
        self.read = {atom for atom in jaxpr.out if isinstance(atom, int)}
        # From the last: whether an equation is necessary follows from those after it.
        for results, eqn in reversed(pairs):
            if self.is_needed(eqn, results):
                self.read.update(atom for atom in self._operands(eqn) if isinstance(atom, int))

    def is_needed(self, eqn: Eqn, results: range) -> bool:
        """Return whether an equation has an effect, or its results are read."""
        # An effect, e.g. of `jax.debug.print`, has to stay although nothing reads a result.
        return bool(eqn.params.get("ctx effects")) or not self.read.isdisjoint(results)

    def get_aval(self, atom: Atom) -> Aval:
        """Return the type of an atom."""
        return self._avals[self._types[atom] if isinstance(atom, int) else atom.aval]

    def find_selector(self, choice: Eqn) -> Selector:
        """Return the operand that selects a branch of `cond`.

        `lax.cond` makes a number of its predicate, `lax.switch` clamps its index, and
        `lax.platform_dependent` reads a platform index. The written functions add these equations
        themselves.
        """
        atom, branches = choice.inputs[0], len(choice.params["branches"])
        maker = self._find_maker(atom)
        if (
            maker is not None
            and maker.primitive == "convert_element_type"
            and branches == _PREDICATE_BRANCHES
        ):
            (predicate,) = maker.inputs
            # An index of another dtype is converted, too.
            if isinstance(predicate, int) and self.get_aval(predicate).dtype == "bool":
                return Selector(predicate, is_predicate=True)
        if maker is not None and _is_clamp(maker, branches):
            atom = maker.inputs[1]
            maker = self._find_maker(atom)
        if maker is not None and maker.primitive == "platform_index":
            return Selector(atom, platforms=maker)
        return Selector(atom)

    def _find_maker(self, atom: Atom) -> Eqn | None:
        return self._makers.get(atom) if isinstance(atom, int) else None

    def _operands(self, eqn: Eqn) -> list[Atom]:
        """Return the atoms that the written statement reads."""
        if eqn.primitive != "cond":
            return eqn.inputs
        selector = self.find_selector(eqn)
        return eqn.inputs[1:] if selector.platforms else [selector.atom, *eqn.inputs[1:]]


def _is_clamp(eqn: Eqn, branches: int) -> bool:
    """Return whether an equation clamps an index to the numbers of the branches."""
    if eqn.primitive != "clamp":
        return False
    low, _, high = eqn.inputs
    # `lax.switch` clamps with literals.
    if isinstance(low, int) or isinstance(high, int):
        return False
    return bool(low.value == 0 and high.value == branches - 1)
