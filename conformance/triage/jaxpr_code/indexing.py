"""How reading and writing parts of arrays is said, and random numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from conformance.triage.jaxpr_code.arrays import dtype_of, record_of
from conformance.triage.jaxpr_code.program import UnsayableError, numeral
from conformance.triage.jaxpr_code.text import number, plain, tuple_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.triage.jaxpr_code.program import Value
    from conformance.triage.jaxpr_code.writer import Equation, Rule

SCATTERS: Final = {
    "scatter": "scatter",
    **{f"scatter{dash}{how}": f"scatter_{how}" for how in ("add", "mul", "min", "max", "sub")
       for dash in "-_"},
}  # fmt: skip
PLAIN_INDICES = (0, 5, 3)
"""Release from which indices need not be allowed to be negative."""
IMPLEMENTATIONS: Final = {"fry": "threefry2x32", "rbg": "rbg", "urbg": "unsafe_rbg"}
"""Random number generators by the tag that keys of theirs bear."""


def _starts(eqn: Equation, starts: Sequence[Value]) -> tuple[str, str]:
    """Return where a part starts, and how it is said that these are no indices from the end."""
    if eqn.program.release >= PLAIN_INDICES:
        return tuple_of(start.text for start in starts), ", allow_negative_indices=False"
    return tuple_of(_at_least_0(start) for start in starts), ""


def _at_least_0(start: Value) -> str:
    if start.bare:
        return str(max(0, int(start.bare)))
    return f"lax.max({start.text}, np.{start.aval.dtype}(0))"


def _dynamic_slice(eqn: Equation) -> str:
    value, *starts = eqn.inputs
    sizes = plain(eqn.take("slice_sizes"))
    said, more = _starts(eqn, starts)
    return f"lax.dynamic_slice({value.text}, {said}, {sizes}{more})"


def _dynamic_update(eqn: Equation) -> str:
    value, update, *starts = eqn.inputs
    said, more = _starts(eqn, starts)
    return f"lax.dynamic_update_slice({value.text}, {update.text}, {said}{more})"


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
        return plain(name)
    if name not in IMPLEMENTATIONS:
        raise UnsayableError("impl", f"not known to be {tag}")
    return plain(IMPLEMENTATIONS[name])


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


def _threefry(eqn: Equation) -> str:
    eqn.program.imports.add("from jax.extend.random import threefry2x32_p")
    return f"threefry2x32_p.bind({', '.join(eqn.texts)})"


RULES: Final[dict[str, Rule]] = {
    **dict.fromkeys(SCATTERS, _scatter),
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
}
"""How each of these primitives is said."""
