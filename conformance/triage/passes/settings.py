"""Settings of a pass bisection: disabled HLO passes, XLA flags, options of jax. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from conformance.cells.cell import Cell

DISABLED: Final = "xla_disable_hlo_passes"
"""The compiler option, and the XLA flag, that names passes to disable."""
DUMP: Final = {"xla_dump_hlo_pass_re": ".*", "xla_dump_hlo_as_proto": True}
"""Compiler options that make XLA write a file after each pass that changed the program."""
EVERYWHERE: Final = (
    ("xla_allow_excess_precision", False),
    ("xla_llvm_disable_expensive_passes", True),
)
"""Flags of every platform, with the value that is not their default."""
FLAGS: Final = {
    "cpu": (
        ("xla_cpu_enable_fast_min_max", False),
        ("xla_cpu_enable_fast_math", True),
        ("xla_cpu_enable_concurrency_optimized_scheduler", True),
        ("xla_cpu_enable_concurrency_optimized_scheduler", False),
        ("xla_cpu_copy_insertion_use_region_analysis", True),
        ("xla_cpu_strict_dot_conv_math", True),
        ("xla_cpu_use_fusion_emitters", True),
        ("xla_cpu_use_fusion_emitters", False),
        ("xla_cpu_use_thunk_runtime", True),
        ("xla_cpu_use_thunk_runtime", False),
        ("xla_cpu_multi_thread_eigen", False),
        ("xla_cpu_use_onednn", False),
        ("xla_cpu_use_xnnpack", False),
    ),
    "tpu": (
        ("xla_tpu_enable_latency_hiding_scheduler", True),
        ("xla_tpu_enable_latency_hiding_scheduler", False),
        ("xla_tpu_enable_async_collective_fusion", True),
        ("xla_tpu_enable_async_collective_fusion", False),
        ("xla_tpu_enable_data_parallel_all_reduce_opt", True),
        ("xla_tpu_spmd_rng_bit_generator_unsafe", True),
        ("xla_enable_async_all_gather", False),
        ("xla_enable_async_collective_permute", False),
    ),
    "cuda": (
        ("xla_gpu_enable_triton_gemm", False),
        ("xla_gpu_enable_latency_hiding_scheduler", True),
        ("xla_gpu_enable_latency_hiding_scheduler", False),
        ("xla_gpu_enable_fast_min_max", True),
        ("xla_gpu_deterministic_ops", True),
        ("xla_gpu_enable_cublaslt", True),
        ("xla_gpu_enable_while_loop_double_buffering", True),
        ("xla_gpu_enable_reassociation_for_converted_ar", False),
        ("xla_gpu_enable_pipelined_all_reduce", True),
        ("xla_gpu_enable_priority_fusion", False),
        ("xla_gpu_exclude_nondeterministic_ops", True),
    ),
}
"""Flags by kind of platform; both values if releases differ in the default."""
KINDS: Final = {"gpu": "cuda"}
"""Platforms that take the flags of another kind."""
OPTIONS: Final = (
    "jax_threefry_partitionable",
    "jax_use_shardy_partitioner",
    "jax_default_matmul_precision",
    "jax_enable_x64",
    "jax_use_direct_linearize",
    "jax_pmap_shmap_merge",
    "jax_softmax_custom_jvp",
    "jax_use_simplified_jaxpr_constants",
    "jax_vjp3",
)
"""Options of `jax.config` that change a program or its compilation."""
_WORDS: Final = {"jax_default_matmul_precision": ("highest", "default")}
"""Values of options that are words: the first, or the second if the first is set already."""
BOUNDS: Final = frozenset({"pipeline-start", "pipeline-end"})
"""Names in dumps for the start and the end of a pipeline, which are no passes."""
_DUMPED: Final = re.compile(
    r"module_(\d+)\..*\.(\d{4,})\.(.+?)\.after_(.+?)\.before_(.+?)\.(?:txt|hlo\.pb(?:\.gz)?)"
)


PASS, FLAG, CONFIG = "pass", "flag", "config"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A setting with which a program is tried.

    Attributes:
        kind: `pass`, `flag` or `config`.
        disabled: The passes that are disabled.
        name: The flag or option that is set; empty for passes.
        value: Value of the flag or option.
    """

    kind: str = PASS
    disabled: tuple[str, ...] = ()
    name: str = ""
    value: Any = None

    @property
    def options(self) -> dict[str, Any]:
        """The setting as compiler options."""
        if self.kind == PASS:
            return {DISABLED: ",".join(self.disabled)}
        return {self.name: self.value}

    def __str__(self) -> str:
        """Return the setting in words."""
        if self.name:
            return f"with {self.name}={self.value}"
        return f"without {', '.join(self.disabled)}" if self.disabled else "unchanged"


UNCHANGED: Final = Setting()
"""The setting of a program with nothing disabled."""


def format_flags(options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return compiler options as flags of XLA; an empty list of passes needs none.

    Args:
        options: Value by name.
    """
    return tuple(
        f"--{name}={format_value(value)}" for name, value in options.items() if value != ""
    )


def format_value(value: Any) -> str:
    """Return the value of a flag or an option as a flag or a variable takes it.

    Args:
        value: The value.
    """
    return str(value).lower() if isinstance(value, bool) else str(value)


def list_flags(cell: Cell) -> Iterator[Setting]:
    """Yield the flags to try in a cell, each with the value to try.

    Args:
        cell: The cell; flags that it sets already are left out.
    """
    kind = cell.platform.partition(":")[0].partition("-")[0]
    given = {flag.removeprefix("--").partition("=")[0] for flag in cell.xla_flags}
    for name, value in (*EVERYWHERE, *FLAGS.get(KINDS.get(kind, kind), ())):
        if name not in given:
            yield Setting(kind=FLAG, name=name, value=value)


def list_options(values: Mapping[str, Any]) -> Iterator[Setting]:
    """Yield the options to try, each with a value that differs from its current value.

    Args:
        values: The options that the release has, with their values in the cell.
    """
    for name in OPTIONS:
        if name not in values:
            continue  # releases add and remove options
        if name in _WORDS:
            first, second = _WORDS[name]
            value: Any = second if values[name] == first else first
        elif isinstance(values[name], bool):
            value = not values[name]
        else:
            continue
        yield Setting(kind=CONFIG, name=name, value=value)


def parse_pass_names(files: Iterable[str], *, unfinished: bool = False) -> list[str]:
    """Return the passes that changed a program, in the order of their first change.

    Args:
        files: Names of the files that XLA dumped: one after each pass that changed something,
            e.g. `module_0003.jit_f.0008.simplification.after_algsimp.before_sort.txt`.
        unfinished: Whether compilation failed, so that the pass after the last dump may be at
            fault.

    Returns:
        Names of passes, without nested pipelines, but with the passes in them.
    """
    found = [match.groups() for name in files if (match := _DUMPED.fullmatch(name))]
    # By module and number of the dump: file systems list files in any order.
    found.sort(key=lambda groups: (int(groups[0]), int(groups[1])))
    # A pipeline is dumped like a pass of the pipeline around it.
    pipelines = {pipeline for _, _, pipeline, *_ in found}
    names: dict[str, None] = {}
    for *_, after, before in found:
        names |= dict.fromkeys([after, before] if unfinished else [after])
    return [name for name in names if name not in pipelines | BOUNDS]
