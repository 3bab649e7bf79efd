"""How reading and writing parts of arrays is said, and random numbers and linear algebra."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from conformance.triage.jaxpr_code_arrays import dtype_of, record_of
from conformance.triage.jaxpr_code_text import number, plain, tuple_of
from conformance.triage.jaxpr_code_writer import UnsayableError, numeral

if TYPE_CHECKING:
    from conformance.triage.jaxpr_code_writer import Equation, Rule

SCATTERS: Final = {
    "scatter": "scatter",
    **{f"scatter{dash}{how}": f"scatter_{how}" for how in ("add", "mul", "min", "max", "sub")
       for dash in "-_"},
}  # fmt: skip
PLAIN_INDICES = (0, 5, 1)
"""Release from which indices need not be allowed to be negative."""
IMPLEMENTATIONS: Final = {"fry": "threefry2x32", "rbg": "rbg", "urbg": "unsafe_rbg"}
"""Random number generators by the tag that keys of theirs bear."""


def _never_negative(eqn: Equation) -> str:
    return ", allow_negative_indices=False" if eqn.program.release >= PLAIN_INDICES else ""


def _dynamic_slice(eqn: Equation) -> str:
    value, *starts = eqn.texts
    sizes = plain(eqn.take("slice_sizes"))
    return f"lax.dynamic_slice({value}, {tuple_of(starts)}, {sizes}{_never_negative(eqn)})"


def _dynamic_update(eqn: Equation) -> str:
    value, update, *starts = eqn.texts
    more = _never_negative(eqn)
    return f"lax.dynamic_update_slice({value}, {update}, {tuple_of(starts)}{more})"


def _numbers(eqn: Equation, kind: str) -> str:
    fields = record_of(eqn, "dimension_numbers")
    said = ", ".join(
        f"{name}={plain(value)}"
        for name, value in fields.items()
        if value or not name.endswith("batching_dims")
    )
    return f"dimension_numbers=lax.{kind}({said})"


def _care(eqn: Equation) -> list[str]:
    """Return the keywords of how careful indexing is."""
    said = [f"{name}=True" for name in ("indices_are_sorted", "unique_indices") if eqn.take(name)]
    if (mode := eqn.take("mode")) is not None:
        said.append(f"mode=lax.GatherScatterMode.{str(mode).rpartition('.')[2]}")
    return said


def _gather(eqn: Equation) -> str:
    more = [_numbers(eqn, "GatherDimensionNumbers")]
    more += [f"slice_sizes={plain(eqn.take('slice_sizes'))}", *_care(eqn)]
    if (fill := eqn.take("fill_value")) is not None:
        aval = eqn.inputs[0].aval
        bare = number(fill, aval.dtype)
        if bare is None:
            raise UnsayableError("fill_value", f"not known to be {plain(fill)}")
        more.append(f"fill_value={numeral(bare, aval).bare}")
    return f"lax.gather({', '.join([*eqn.texts, *more])})"


def _scatter(eqn: Equation) -> str:
    eqn.take("update_jaxpr")  # follows from which scatter it is
    eqn.take("update_consts")
    more = [_numbers(eqn, "ScatterDimensionNumbers"), *_care(eqn)]
    return f"lax.{SCATTERS[eqn.primitive]}({', '.join([*eqn.texts, *more])})"


def _implementation(tag: Any) -> str:
    name = str(tag).removeprefix("key<").removesuffix(">")
    if name in IMPLEMENTATIONS.values():
        return repr(name)
    if name not in IMPLEMENTATIONS:
        raise UnsayableError("impl", f"not known to be {tag}")
    return repr(IMPLEMENTATIONS[name])


def _seed(eqn: Equation) -> str:
    return f"jax.random.key({eqn.texts[0]}, impl={_implementation(eqn.take('impl'))})"


def _wrap(eqn: Equation) -> str:
    return f"jax.random.wrap_key_data({eqn.texts[0]}, impl={_implementation(eqn.take('impl'))})"


def _unwrap(eqn: Equation) -> str:
    return f"jax.random.key_data({eqn.texts[0]})"


def _of_one_key(eqn: Equation) -> None:
    if eqn.inputs[0].aval.shape:
        raise UnsayableError("", "public functions take one key, not an array of them")


def _bits(eqn: Equation) -> str:
    _of_one_key(eqn)
    width = eqn.take("bit_width")
    return f"jax.random.bits({eqn.texts[0]}, {plain(eqn.take('shape'))}, jnp.uint{width})"


def _random_split(eqn: Equation) -> str:
    _of_one_key(eqn)
    return f"jax.random.split({eqn.texts[0]}, {plain(eqn.take('shape'))})"


def _fold_in(eqn: Equation) -> str:
    _of_one_key(eqn)
    return f"jax.random.fold_in({', '.join(eqn.texts)})"


def _clone(eqn: Equation) -> str:
    return f"jax.random.clone({eqn.texts[0]})"


def _generate(eqn: Equation) -> str:
    algorithm = str(eqn.take("algorithm")).rpartition(".")[2]
    shape, kind = plain(eqn.take("shape")), dtype_of(eqn, "dtype")
    said = f"algorithm=lax.RandomAlgorithm.{algorithm}"
    return f"lax.rng_bit_generator({eqn.texts[0]}, {shape}, {kind}, {said})"


def _cholesky(eqn: Equation) -> str:
    return f"lax.linalg.cholesky({eqn.texts[0]}, symmetrize_input=False)"


def _triangular(eqn: Equation) -> str:
    names = ("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal")
    more = [f"{name}={plain(eqn.take(name))}" for name in names]
    return f"lax.linalg.triangular_solve({', '.join([*eqn.texts, *more])})"


def _linalg(eqn: Equation) -> str:
    return f"lax.linalg.{eqn.primitive}({', '.join(eqn.texts)})"


def _threefry(eqn: Equation) -> str:
    eqn.program.imports.add("from jax.extend.random import threefry2x32_p")
    return f"threefry2x32_p.bind({', '.join(eqn.texts)})"


RULES: Final[dict[str, Rule]] = {
    **dict.fromkeys(SCATTERS, _scatter),
    **dict.fromkeys(("householder_product", "lu", "lu_pivots_to_permutation"), _linalg),
    "cholesky": _cholesky,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update,
    "gather": _gather,
    "random_bits": _bits,
    "random_clone": _clone,
    "random_fold_in": _fold_in,
    "random_seed": _seed,
    "random_split": _random_split,
    "random_unwrap": _unwrap,
    "random_wrap": _wrap,
    "rng_bit_generator": _generate,
    "threefry2x32": _threefry,
    "triangular_solve": _triangular,
}
"""How each of these primitives is said."""
