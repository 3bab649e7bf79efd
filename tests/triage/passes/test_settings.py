"""What is tried besides passes."""

from __future__ import annotations

from conformance.cells.cell import Cell
from conformance.triage.passes.settings import flags_for, options_for


def flags(platform: str, *given: str) -> dict[str, set[bool]]:
    """Return the values that are tried of each flag."""
    cell = Cell(release="0.8.3", python="3.11", platform=platform, xla_flags=given)
    found: dict[str, set[bool]] = {}
    for name, value in flags_for(cell):
        assert value not in found.setdefault(name, set())
        found[name].add(value)
    return found


def test_flags_are_those_of_the_platform() -> None:
    """And a few that every platform has."""
    assert "xla_cpu_enable_fast_math" in flags("cpu")
    assert not [name for name in flags("tpu:v5e:2x2") if name.startswith(("xla_cpu", "xla_gpu"))]
    assert "xla_gpu_enable_triton_gemm" in flags("cuda:h100:1x1x4")
    assert flags("gpu") == flags("cuda:h100:1x1x4")
    assert flags("cpu")["xla_allow_excess_precision"] == {False}


def test_a_flag_that_the_cell_sets_is_left_as_it_is() -> None:
    """To whatever it sets it."""
    assert "xla_cpu_enable_fast_math" not in flags("cpu", "--xla_cpu_enable_fast_math=true")


def test_options_get_another_value_than_they_have() -> None:
    """Those that the release has; words are not turned around but exchanged."""
    values = {"jax_enable_x64": True, "jax_default_matmul_precision": None, "jax_vjp3": "odd"}
    tried = dict(options_for(values))
    assert tried == {"jax_enable_x64": False, "jax_default_matmul_precision": "highest"}
    assert dict(options_for({"jax_default_matmul_precision": "highest"})) == {
        "jax_default_matmul_precision": "default"
    }
