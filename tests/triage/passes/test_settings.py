"""Passes, flags and options that a program is tried with."""

from __future__ import annotations

from conformance.cells.cell import Cell
from conformance.triage.passes.settings import list_flags, list_options, parse_pass_names

CPU = [
    "module_0003.jit_f.0008.simplification.after_algsimp.before_simplify-sorts.txt",
    "module_0003.jit_f.0000.sharding-removal.after_pipeline-start.before_flatten-call-graph.txt",
    "module_0003.jit_f.0001.sharding-removal.after_dce.before_pipeline-end.txt",
    "module_0003.jit_f.0010.simplification.after_algsimp.before_dce.txt",
    "module_0003.jit_f.0012.HLO_passes.after_simplification.before_fusion.txt",
    "module_0003.jit_f.before_optimizations.txt",
    "module_0003.jit_f.obj-file.part_00.o",
    "module_0003.jit_f.ir-with-opt.part_08.ll",
    "jit_f_1795307551028",
]
TPU = [
    (
        "module_0009.jit_f.cl_844590465.0004.X64_elimination.after_pipeline-start"
        ".before_bitcast_dtypes_expander.hlo.pb"
    ),
    (
        "module_0009.jit_f.cl_844590465.10005.After_X64_rewriter,_before_optimizations"
        ".after_call-inliner.before_cse.hlo.pb"
    ),
]


def flags(platform: str, *given: str) -> dict[str, set[bool]]:
    """Return the values that are tried of each flag."""
    cell = Cell(release="0.8.3", python="3.11", platform=platform, xla_flags=given)
    found: dict[str, set[bool]] = {}
    for flag in list_flags(cell):
        assert flag.value not in found.setdefault(flag.name, set())
        found[flag.name].add(flag.value)
    return found


def test_flags_are_those_of_the_platform() -> None:
    """And a few that every platform has."""
    assert "xla_cpu_enable_fast_math" in flags("cpu")
    assert not [name for name in flags("tpu:v5e:2x2") if name.startswith(("xla_cpu", "xla_gpu"))]
    assert "xla_gpu_enable_triton_gemm" in flags("cuda:h100:1x1x4")
    assert flags("gpu") == flags("cuda:h100:1x1x4")
    assert flags("cpu")["xla_allow_excess_precision"] == {False}


def test_a_flag_of_the_cell_is_not_tried() -> None:
    """To whatever it sets it."""
    assert "xla_cpu_enable_fast_math" not in flags("cpu", "--xla_cpu_enable_fast_math=true")


def test_options_are_tried_with_another_value() -> None:
    """Only options of the release; words have two values."""
    values = {"jax_enable_x64": True, "jax_default_matmul_precision": None, "jax_vjp3": "odd"}
    tried = {option.name: option.value for option in list_options(values)}
    assert tried == {"jax_enable_x64": False, "jax_default_matmul_precision": "highest"}
    (option,) = list_options({"jax_default_matmul_precision": "highest"})
    assert option.value == "default"


def test_passes_are_in_the_order_of_their_first_change() -> None:
    """Whatever the order of the files; what is no pass is left out, and so is a pipeline."""
    assert parse_pass_names(CPU) == ["dce", "algsimp"]


def test_modules_with_dots_in_their_names() -> None:
    """As libtpu names them, and as protos."""
    assert parse_pass_names(TPU) == ["call-inliner"]


def test_an_unfinished_compilation_includes_the_next_pass() -> None:
    """It may have failed."""
    found = parse_pass_names(CPU, unfinished=True)
    assert found == ["flatten-call-graph", "dce", "algsimp", "simplify-sorts", "fusion"]


def test_without_dumps_there_are_no_passes() -> None:
    """No passes."""
    assert parse_pass_names([]) == []
