"""Names of passes, from the names of files that releases of XLA really dumped."""

from __future__ import annotations

from conformance.triage.passes.names import pass_names

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


def test_passes_are_in_the_order_in_which_they_acted_first() -> None:
    """Whatever the order of the files; what is no pass is left out, and so is a pipeline."""
    assert pass_names(CPU) == ["dce", "algsimp"]


def test_modules_with_dots_in_their_names() -> None:
    """As libtpu names them, and as protos."""
    assert pass_names(TPU) == ["call-inliner"]


def test_passes_that_were_not_ended() -> None:
    """Where XLA failed on the way, a pass that follows one that acted may be at fault."""
    found = pass_names(CPU, unfinished=True)
    assert found == ["flatten-call-graph", "dce", "algsimp", "simplify-sorts", "fusion"]


def test_nothing_dumped() -> None:
    """No passes."""
    assert pass_names([]) == []
