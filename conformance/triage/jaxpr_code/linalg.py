"""How linear algebra is said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.triage.jaxpr_code.program import Assigned, UnsayableError
from conformance.triage.jaxpr_code.text import plain

if TYPE_CHECKING:
    from conformance.triage.jaxpr_code.program import Value
    from conformance.triage.jaxpr_code.writer import Equation, Rule


def _cholesky(eqn: Equation) -> str:
    return f"lax.linalg.cholesky({eqn.texts[0]}, symmetrize_input=False)"


def _triangular(eqn: Equation) -> str:
    names = ("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal")
    more = [f"{name}={plain(eqn.take(name))}" for name in names]
    return f"lax.linalg.triangular_solve({', '.join([*eqn.texts, *more])})"


def _linalg(eqn: Equation) -> str:
    more = [f"permutation_size={size}"] if (size := eqn.take("permutation_size")) else []
    return f"lax.linalg.{eqn.primitive}({', '.join([*eqn.texts, *more])})"


def _keywords(eqn: Equation, *names: str) -> str:
    """Return the parameters as keywords, those that say nothing left out."""
    values = {name: eqn.take(name) for name in names}
    said = {name: value for name, value in values.items() if value is not None}
    return ", ".join([eqn.texts[0], *(f"{name}={plain(value)}" for name, value in said.items())])


def _qr(eqn: Equation) -> str:
    pivoting = {"pivoting"} if eqn.take("pivoting") else set()
    return f"lax.linalg.qr({_keywords(eqn, 'full_matrices', *pivoting)})"


def _eigh(eqn: Equation) -> str:
    said = _keywords(eqn, "lower", "sort_eigenvalues", "subset_by_index")
    return f"lax.linalg.eigh({said}, symmetrize_input=False)"


def _svd(eqn: Equation) -> str | Assigned:
    said = f"lax.linalg.svd({_keywords(eqn, 'full_matrices', 'compute_uv', 'subset_by_index')})"
    if len(eqn.outputs) == 1:
        return said
    values, left, right = names = eqn.names()
    return Assigned(f"{left}, {values}, {right}", said, names)


def _linear_solve(eqn: Equation) -> list[Value]:
    """Say the solver: that of the transposed system, and its check, are for derivatives."""
    eqn.take("linear")
    match eqn.take("const_lengths"), eqn.take("jaxprs"):
        case [str(), *lengths], [str(), *jaxprs]:
            counts, solvers = dict(lengths), dict(jaxprs)
        case _:
            raise UnsayableError("jaxprs", "expected those of a linear system")
    start = counts["matvec"] + counts["vecmat"]
    consts = eqn.inputs[start : start + counts["solve"]]
    right_hand_sides = eqn.inputs[sum(counts.values()) :]
    solver = eqn.program.document.jaxprs[solvers["solve"]["jaxpr"]]
    return eqn.body.eqns(solver, [*consts, *right_hand_sides])


RULES: Final[dict[str, Rule]] = {
    **dict.fromkeys(("householder_product", "lu", "lu_pivots_to_permutation"), _linalg),
    "cholesky": _cholesky,
    "custom_linear_solve": _linear_solve,
    "eigh": _eigh,
    "qr": _qr,
    "svd": _svd,
    "triangular_solve": _triangular,
}
"""How each of these primitives is said."""
