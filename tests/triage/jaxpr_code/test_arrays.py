"""Operators, functions, parts of arrays, reductions, linear algebra, random numbers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.ir.jaxpr.documents import eqn, jaxpr

from .documents import (
    F16,
    F32,
    F32S,
    KEY,
    NEWEST,
    PRED,
    PREDS,
    S32,
    S32S,
    U32,
    WEAK,
    WIDE,
    statements,
)  # fmt: skip

NUMBERS = ["offset_dims", []], ["collapsed_slice_dims", [0]], ["start_index_map", [0]]
BATCHING = ["operand_batching_dims", []], ["start_indices_batching_dims", []]


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (eqn("add", [0, 1]), "add = x + y"),
        (eqn("add_any", [0, 1]), "add = x + y"),
        (eqn("mul", [0, [F32S, 0.10000000149011612]], out_dtype=None), "product = x * 0.1"),
        (eqn("mul", [[F32S, 2.0], 0]), "product = 2.0 * x"),
        (eqn("mul", [0, [WEAK, 2.0]]), "product = lax.mul(x, 2.0)"),
        (eqn("div", [0, 1]), "div = x / y"),
        (eqn("lt", [0, [F32S, "inf"]], (PREDS,)), "less = x < jnp.inf"),
        (eqn("max", [0, [F32S, "-inf"]]), "larger = lax.max(x, np.float32(-np.inf))"),
        (eqn("neg", [0]), "neg = -x"),
        (eqn("sin", [0], accuracy=None), "sin = jnp.sin(x)"),
        (eqn("rsqrt", [0]), "rsqrt = lax.rsqrt(x)"),
        (eqn("integer_pow", [0], y=3), "power = lax.integer_pow(x, 3)"),
        (
            eqn("convert_element_type", [0], (F16,), new_dtype={"dtype": "float16"}),
            "cast = x.astype(jnp.float16)",
        ),
        (
            eqn("broadcast_in_dim", [[F32S, 0.0]], shape=[4], broadcast_dimensions=[]),
            "wide = jnp.full((4,), 0.0, jnp.float32)",
        ),
        (
            eqn("broadcast_in_dim", [0], (WIDE,), shape=[4, 2], broadcast_dimensions=[0]),
            "wide = lax.broadcast_in_dim(x, (4, 2), (0,))",
        ),
        (
            eqn("slice", [0], start_indices=[0], limit_indices=[2], strides=None),
            "part = lax.slice(x, (0,), (2,))",
        ),
        (
            eqn("iota", [], (S32S,), shape=[4], dimension=0, dtype={"dtype": "int32"}),
            "iota = lax.iota(jnp.int32, 4)",
        ),
        (eqn("concatenate", [0, 1], dimension=0), "joined = lax.concatenate([x, y], dimension=0)"),
    ],
)
def test_primitives_are_written_as_public_functions(made: list[Any], text: str) -> None:
    """Each equation is one statement."""
    assert statements(made) == [text, f"return {text.partition(' = ')[0]}"]


@pytest.mark.parametrize(
    ("primitive", "kinds", "text"),
    [
        ("div", (S32, S32), "lax.div(x, y)"),
        ("lt", (PRED, PRED), "lax.lt(x, y)"),
        ("and", (PRED, PRED), "x & y"),
        ("mul", (WEAK, F32S), "lax.mul(x, y)"),
    ],
)
def test_operator_with_more_equations_is_not_used(
    primitive: str, kinds: tuple[int, int], text: str
) -> None:
    """`/` converts integers, and booleans have no order."""
    made, _ = statements(eqn(primitive, [0, 1], (kinds[0],)), inputs=kinds)
    assert made.partition(" = ")[2] == text


def test_large_integers_have_a_dtype() -> None:
    """Python's integers are weak i32 at first."""
    made, _ = statements(eqn("add", [0, [U32, 4000000000]], (U32,)), inputs=(U32,), out=(1,))
    assert made == "add = lax.add(x, np.uint32(4000000000))"


def test_conversion_of_a_number_is_staged() -> None:
    """Without staging, jax would convert a plain number at once."""
    made = eqn("convert_element_type", [[WEAK, 4.0]], (F32S,), new_dtype={"dtype": "float32"})
    assert statements(made)[0] == "cast = jax.jit(lambda: 4.0)().astype(jnp.float32)"


def test_select_has_the_true_case_first() -> None:
    """The primitive has it last."""
    made = eqn("select_n", [2, 0, 1])
    assert statements(made, inputs=(F32, F32, PREDS), out=(3,))[0] == "chosen = lax.select(z, y, x)"


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (eqn("reduce_sum", [0], (F32S,), axes=[0], out_sharding=None), "jnp.sum(x)"),
        (eqn("reduce_max", [0], (F32S,), axes=[0]), "jnp.max(x)"),
        (eqn("reduce_sum", [0], (F32,), axes=[]), "lax.reduce_sum(x, ())"),
        (eqn("argmax", [0], axes=[0], index_dtype={"dtype": "int8"}), "lax.argmax(x, 0, jnp.int8)"),
        (eqn("cumsum", [0], axis=0, reverse=True), "lax.cumsum(x, axis=0, reverse=True)"),
        (
            eqn("sort", [0], dimension=0, is_stable=True, num_keys=1),
            "lax.sort(x, dimension=0, is_stable=True, num_keys=1)",
        ),
        (
            eqn("dot_general", [0, 1], (F32S,), dimension_numbers=[[[0], [0]], [[], []]],
                precision=["HIGHEST", "HIGHEST"], preferred_element_type={"dtype": "float32"}),
            ("lax.dot_general(x, y, (((0,), (0,)), ((), ())), precision=(lax.Precision.HIGHEST, "
            "lax.Precision.HIGHEST), preferred_element_type=jnp.float32)"),
        ),
        (eqn("fft", [0], fft_type=0, fft_lengths=[4]), 'lax.fft(x, "FFT", (4,))'),
    ],
)  # fmt: skip
def test_reductions_and_products_are_one_call(made: list[Any], text: str) -> None:
    """Without more equations."""
    assert statements(made)[0].partition(" = ")[2] == text


@pytest.mark.parametrize(
    ("release", "text"),
    [
        (NEWEST, "lax.reduce_max(x, (0,))"),
        ("0.4.38", "lax.reduce(x, np.array(np.iinfo(np.int32).min, jnp.int32), lax.max, (0,))"),
    ],
)
def test_integers_are_reduced_by_lax(release: str, text: str) -> None:
    """`jnp` may widen them; older releases have only `lax.reduce`."""
    made = eqn("reduce_max", [0], axes=[0])
    written, _ = statements(made, inputs=(S32S,), out=(1,), release=release)
    assert written.partition(" = ")[2] == text


def test_narrow_floats_are_reduced_by_lax() -> None:
    """`jnp.sum` would widen them."""
    made = eqn("reduce_sum", [0], (F16,), axes=[0])
    assert statements(made, inputs=(F16,), out=(1,))[0] == "total = lax.reduce_sum(x, (0,))"


def test_gather_has_its_dimension_numbers() -> None:
    """Except empty batching dimensions."""
    made = eqn(
        "gather", [0, 1], dimension_numbers=["GatherDimensionNumbers", *NUMBERS, *BATCHING],
        fill_value=None, indices_are_sorted=True, mode="CLIP", slice_sizes=[1],
        unique_indices=False,
    )  # fmt: skip
    assert statements(made, inputs=(F32, S32S))[0] == (
        "gather = lax.gather(x, y, dimension_numbers=lax.GatherDimensionNumbers(offset_dims=(), "
        "collapsed_slice_dims=(0,), start_index_map=(0,)), slice_sizes=(1,), "
        "indices_are_sorted=True, mode=lax.GatherScatterMode.CLIP)"
    )


def test_scatter_has_no_update_function() -> None:
    """It follows from the name of the primitive."""
    made = eqn(
        "scatter-add", [0, 1, 0], dimension_numbers=["ScatterDimensionNumbers",
        ["update_window_dims", []]], indices_are_sorted=False, mode="FILL_OR_DROP",
        unique_indices=True, update_consts=[], update_jaxpr={"jaxpr": 1},
    )  # fmt: skip
    text, _ = statements(made, inputs=(F32, S32S), inner=(jaxpr(inputs=(F32,), out=(0,)),))
    assert text == (
        "scatter_add = lax.scatter_add(x, y, x, dimension_numbers=lax.ScatterDimensionNumbers("
        "update_window_dims=()), unique_indices=True, mode=lax.GatherScatterMode.FILL_OR_DROP)"
    )


@pytest.mark.parametrize(
    ("release", "text"),
    [
        (NEWEST, "lax.dynamic_slice(x, (y,), (2,), allow_negative_indices=False)"),
        ("0.5.2", "lax.dynamic_slice(x, (lax.max(y, np.int32(0)),), (2,))"),
    ],
)
def test_negative_start_is_not_counted_from_the_end(release: str, text: str) -> None:
    """The primitive takes it for 0."""
    made = eqn("dynamic_slice", [0, 1], slice_sizes=[2])
    written, _ = statements(made, inputs=(F32, S32), release=release)
    assert written == f"part = {text}"


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (eqn("random_seed", [1], (KEY,), impl="fry"), 'jax.random.key(y, impl="threefry2x32")'),
        (eqn("random_bits", [0], shape=[4], bit_width=32), "jax.random.bits(x, (4,), jnp.uint32)"),
        (eqn("random_fold_in", [0, 1], (KEY,)), "jax.random.fold_in(x, y)"),
        (eqn("random_unwrap", [0]), "jax.random.key_data(x)"),
    ],
)
def test_random_primitives_are_functions_of_typed_keys(made: list[Any], text: str) -> None:
    """With the implementation by its name."""
    assert statements(made, inputs=(KEY, U32))[0].partition(" = ")[2] == text


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (eqn("cholesky", [0], (WIDE,)), "lax.linalg.cholesky(x, symmetrize_input=False)"),
        (
            eqn("eigh", [0], (WIDE,), lower=True, sort_eigenvalues=True, subset_by_index=None),
            "lax.linalg.eigh(x, lower=True, sort_eigenvalues=True, symmetrize_input=False)",
        ),
        (
            eqn("qr", [0], (WIDE,), full_matrices=False, pivoting=False, use_magma=None),
            "lax.linalg.qr(x, full_matrices=False)",
        ),
    ],
)
def test_linear_algebra_is_not_symmetrized(made: list[Any], text: str) -> None:
    """Public functions do so by default."""
    assert statements(made, inputs=(WIDE, F32))[0].partition(" = ")[2] == text


def test_svd_results_are_reordered() -> None:
    """The primitive returns the singular values first, the function second."""
    made = eqn("svd", [0], (F32, WIDE, WIDE), compute_uv=True, full_matrices=False)
    assert statements(made, inputs=(WIDE,), out=(1, 2, 3)) == [
        "svd_2, svd, svd_3 = lax.linalg.svd(x, full_matrices=False, compute_uv=True)",
        "return (svd, svd_2, svd_3)",
    ]


def test_linear_system_is_written_by_its_solver() -> None:
    """The transposed solver is for derivatives."""
    names = ("matvec", "vecmat", "solve", "transpose_solve")
    made = eqn(
        "custom_linear_solve", [1, 0],
        const_lengths=["_LinearSolveTuple", *([name, int(name == "solve")] for name in names)],
        jaxprs=["_LinearSolveTuple", *([name, {"jaxpr": 1}] for name in names)],
    )  # fmt: skip
    solver = jaxpr(eqn("div", [1, 0]), inputs=(F32S, F32), out=(2,))
    assert statements(made, inputs=(F32, F32S), inner=(solver,))[0] == "div = x / y"
