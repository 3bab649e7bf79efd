"""Values cross the wire bit for bit, with all of their properties."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np
import pytest

from conformance.model.outcome import Outcome
from conformance.model.value import to_array, to_python
from tests.workbench import Bench, leaf_of, planned_cell, value_of

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.cell
TOP = "import jax, jax.numpy as jnp\nfrom jax.sharding import NamedSharding, PartitionSpec as P\n"


@pytest.mark.long(keep=10)
@pytest.mark.parametrize(
    "dtype",
    [
        "bool", "int4", "uint4", "int8", "uint8", "int16", "int32", "uint32", "int64", "uint64",
        "bfloat16", "float16", "float32", "float64", "complex64", "complex128",
        "float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz",
    ],
)  # fmt: skip
def test_an_array_of_every_dtype(bench: Bench, dtype: str) -> None:
    """Name, shape and elements are those of the array in the cell."""
    body = f"return jnp.arange(6).reshape(2, 3).astype('{dtype}')"
    leaf = leaf_of(bench.run(body, "probe(x64=True)", TOP))
    assert (leaf.path, leaf.kind, leaf.dtype, leaf.shape) == ("out", "array", dtype, (2, 3))
    numbers = np.arange(6).reshape(2, 3)
    expected = numbers != 0 if dtype == "bool" else numbers
    assert to_array(leaf).astype(complex).tolist() == expected.tolist()


@pytest.mark.long(keep=4)
@pytest.mark.parametrize("bits", [0x7FC00000, 0x7FC12345, 0xFFC00001, 0x80000000, 0x00000001])
def test_bits_that_comparison_cannot_see(bench: Bench, bits: int) -> None:
    """NaN payloads, the sign of zero and denormals arrive as they are."""
    leaf = leaf_of(bench.run(f"return jnp.asarray(np.uint32([{bits}]).view(np.float32))", top=TOP))
    assert leaf.data == struct.pack("<I", bits)


@pytest.mark.long(keep=6)
@pytest.mark.parametrize(
    ("code", "thing"),
    [
        ("True", True), ("3", 3), ("2**70", 2**70), ("-0.0", -0.0), ("0.1", 0.1), ("1-2j", 1 - 2j),
        ("'é\\n'", "é\n"), ("'\\ud800'", "\ud800"), ("b'\\x00'", b"\0"),
        ("float('inf')", float("inf")),
    ],
)  # fmt: skip
def test_a_python_scalar_stays_python(bench: Bench, code: str, thing: object) -> None:
    """A Python number is not an array, and text is exact."""
    leaf = leaf_of(bench.run(f"return {code}"))
    assert (leaf.kind, leaf.dtype, leaf.shape) == ("python", type(thing).__name__, ())
    assert repr(to_python(leaf)) == repr(thing)


def test_a_tree_keeps_its_structure_paths_and_holes(bench: Bench) -> None:
    """None is a leaf, so that a result that vanished is seen."""
    value = value_of(
        bench.run("return {'b': (1, None), 'a': [jnp.zeros(2), np.float16(3)]}", top=TOP)
    )
    assert value.structure == "{'a': [*, *], 'b': (*, *)}"
    assert [(leaf.path, leaf.kind, leaf.dtype) for leaf in value.leaves] == [
        ("out['a'][0]", "array", "float32"),
        ("out['a'][1]", "numpy", "float16"),
        ("out['b'][0]", "python", "int"),
        ("out['b'][1]", "python", "NoneType"),
    ]


@pytest.mark.parametrize(("code", "shape"), [("jnp.zeros((0, 3))", (0, 3)), ("jnp.ones(())", ())])
def test_empty_and_zero_dimensional(bench: Bench, code: str, shape: tuple[int, ...]) -> None:
    """No elements, and no dimensions, are two things."""
    leaf = leaf_of(bench.run(f"return {code}", top=TOP))
    assert leaf.shape == shape
    assert to_array(leaf).shape == shape


@pytest.mark.parametrize(("code", "weak"), [("jnp.asarray(1.0)", True), ("jnp.float32(1)", False)])
def test_weak_types_are_seen(bench: Bench, code: str, weak: bool) -> None:
    """Weak typing decides later promotions, so it is part of the value."""
    assert leaf_of(bench.run(f"return {code}", top=TOP)).weak_type is weak


def test_a_typed_key_is_its_kind_and_its_data(bench: Bench) -> None:
    """A PRNG key is no number; its data are kept."""
    leaf = leaf_of(bench.run("return jax.random.key(7)", top=TOP))
    assert (leaf.kind, leaf.dtype, leaf.shape) == ("key", "key<fry>", ())
    assert to_array(leaf).tolist() == [0, 7]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("P('x')", "tiles[0=0:2,: 1=0:2,: 2=2:4,: 3=2:4,:]"),
        ("P('x', 'y')", "tiles[0=0:2,0:1 1=0:2,1:2 2=2:4,0:1 3=2:4,1:2]"),
        ("P()", "replicated[4]"),
    ],
)
def test_placement_is_described_in_the_same_words(bench: Bench, spec: str, words: str) -> None:
    """Which device holds which tile, however a release spells its shardings."""
    body = f"""
        sharding = NamedSharding(env.mesh((2, 2), ("x", "y")), {spec})
        return jax.device_put(jnp.ones((4, 2)), sharding)
    """
    assert leaf_of(bench.run(body, "probe(devices=4)", TOP)).sharding == words


def test_results_of_pmap_on_old_releases(tmp_path: Path) -> None:
    """The mapped dimension has an integer index instead of a slice."""
    body = "return jax.pmap(lambda x: x)(np.ones((4, 2), np.float32))"
    with Bench(planned_cell("0.4.30"), tmp_path) as bench:
        leaf = leaf_of(bench.run(body, "probe(devices=4)", TOP))
    assert leaf.sharding == "tiles[0=0:1,: 1=1:2,: 2=2:3,: 3=3:4,:]"


def test_a_sharding_on_one_device_is_single(bench: Bench) -> None:
    """The first device unless another is named."""
    body = "return [jnp.ones(1), jax.device_put(1.0, jax.devices()[1])]"
    value = value_of(bench.run(body, "probe(devices=2)", TOP))
    assert [leaf.sharding for leaf in value.leaves] == ["single", "single@1"]


@pytest.mark.long(keep=4)
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("kept = []; jax.jit(lambda x: kept.append(x))(1); return kept[0]", "is a tracer"),
        ("return [1, np.array([object()])]", "out[1] is a ndarray"),
        ("return {'a': {1, 2}}", "out['a'] is a set, expected an array or a Python scalar"),
        ("return []", "captured nothing"),
        ("return [None]", "captured nothing"),
    ],
)
def test_leaves_that_are_no_values_are_errors(bench: Bench, body: str, said: str) -> None:
    """A leaked tracer, an object, a result without leaves."""
    finished = bench.run(body, top=TOP)
    assert finished.outcome is Outcome.RAISED
    assert finished.error is not None
    assert said in finished.error.message
