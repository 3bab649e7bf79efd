"""Texts of a traced, lowered or compiled program: IRs, estimates and layouts.

Each function tests for features, never for a version, and raises if a release or backend lacks
them. Nothing is interpreted: that is the task of the orchestrator.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import re
import tempfile
import warnings
from contextlib import contextmanager
from functools import cache, cached_property, partial
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
from jax._src.interpreters import mlir

from conformance.worker.jaxprs import encode_jaxpr
from conformance.worker.values import describe_sharding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


MEMORY_FIELDS = (
    "generated_code_size_in_bytes",
    "argument_size_in_bytes",
    "output_size_in_bytes",
    "alias_size_in_bytes",
    "temp_size_in_bytes",
    "peak_memory_in_bytes",
)
LARGEST_HLO = 64 * 2**20
"""Bytes of an HLO text above which its large constants stay elided: there may be gigabytes."""
BYTES_AN_ELEMENT = 8
"""Low estimate of the text of one element of a large constant."""
# `_hlo` from 0.10.2, `_jax` in 0.6.2 to 0.10.1, `xla_extension` up to 0.5.3.
OPTIONS_LIVE_IN = ("jaxlib._hlo", "jaxlib._jax", "jaxlib.xla_extension")
DUMPED = "after_optimizations.txt"
_ELIDED = re.compile(r"\[([\d,]*)\]\S* constant\(\{\.\.\.\}\)")
_DUMP_NUMBER = re.compile(r"module_(\d+)\.")


class UnavailableError(Exception):
    """A release or backend lacks a feature; the message names it."""


def render_jaxpr(traced: Any) -> str:
    """Return a traced program's jaxpr as `conformance.worker.jaxprs` documents it."""
    return encode_jaxpr(traced.jaxpr)


def render_stablehlo(lowered: Any) -> str:
    """Return a lowered program in MLIR's generic form: nothing elided, with locations."""
    operation = lowered.compiler_ir("stablehlo").operation
    # The generic form can be parsed without knowing the dialects, whose syntax changes.
    return str(
        operation.get_asm(
            print_generic_op_form=True, large_elements_limit=None, enable_debug_info=True
        )
    )


class _Backend:
    """Properties of this process's backend, found as programs are compiled.

    Attributes:
        hides_text: Whether HLO is only available by dumping it.
    """

    hides_text = False


def compile_with_text(lowered: Any, compile_: Callable[..., Any]) -> tuple[Any, Callable[[], str]]:
    """Compile a program such that its optimised HLO is available.

    If an earlier program of this process showed that the backend hides the text, XLA dumps it at
    once, so that the program is not compiled twice.

    Args:
        lowered: Lowered program.
        compile_: Compiles it, with compiler options if there are any.

    Returns:
        The executable, and a function that returns its text or raises `UnavailableError`.
    """
    if _Backend.hides_text:
        # A program that cannot be compiled with a dump is compiled without, and has no text.
        with tempfile.TemporaryDirectory() as folder, contextlib.suppress(Exception):
            made = _compile_dumping(lowered, compile_, folder)
            text = read_hlo_dump(Path(folder))
            return made, lambda: text
    made = compile_(lowered)
    return made, lambda: render_hlo(lowered, made)


def render_hlo(lowered: Any, compiled: Any) -> str:
    """Return the optimised module: as `compiled.as_text()`, but with its large constants.

    Args:
        lowered: The lowered program, compiled again to be dumped if the backend gives no text.
        compiled: Executable of the program.

    Returns:
        The text of the first module; large constants are left as `{...}` where all would take
        more than 64 MiB.

    Raises:
        UnavailableError: If the backend neither gives nor dumps the text.
    """
    text = compiled.as_text()
    if text is None:  # compile-only CUDA, 0.4.38 to 0.8.1
        _Backend.hides_text = True
        return _compile_again(lowered)
    # `as_text()` prints large constants as `{...}`, which would hide a change of their values.
    elided = sum(prod(map(int, filter(None, found.split(",")))) for found in _ELIDED.findall(text))
    if not elided or elided * BYTES_AN_ELEMENT > LARGEST_HLO:
        return str(text)
    modules = list_hlo_modules(compiled)
    options = _make_print_options()
    if len(modules) != 1 or options is None:
        return str(text)
    options.print_large_constants = True
    whole = modules[0].to_string(options)
    return str(whole if len(whole) <= LARGEST_HLO else text)


def list_hlo_modules(compiled: Any) -> list[Any]:
    """Return the modules of an executable, empty if it does not give them."""
    try:
        return list(compiled.runtime_executable().hlo_modules())
    except Exception:  # jaxlib's error types move from release to release
        return []


def _make_print_options() -> Any:
    kind = _find_options_type()
    return None if kind is None else kind()


@cache
def _find_options_type() -> Any:
    for name in OPTIONS_LIVE_IN:
        try:
            found = getattr(importlib.import_module(name), "HloPrintOptions", None)
        except ImportError:
            continue
        if found is not None:
            return found
    return None


def _compile_again(lowered: Any) -> str:
    """Compile once more, so that XLA dumps the text."""
    with tempfile.TemporaryDirectory() as folder:
        _compile_dumping(lowered, _compile, folder)
        return read_hlo_dump(Path(folder))


def _compile(lowered: Any, options: Mapping[str, Any]) -> Any:
    return lowered.compile(compiler_options=options)


def _compile_dumping(lowered: Any, compile_: Callable[..., Any], folder: str) -> Any:
    options = {"xla_dump_to": folder, "xla_dump_hlo_as_text": True}
    try:
        return compile_(lowered, {**options, "xla_dump_large_constants": True})
    except Exception:  # older releases refuse the option for constants
        return compile_(lowered, options)


def read_hlo_dump(folder: Path) -> str:
    """Return the optimised module that XLA dumped last.

    Args:
        folder: Folder of `--xla_dump_to`.

    Returns:
        The text of the module.

    Raises:
        UnavailableError: If XLA dumped no optimised module.
    """
    files = [file for file in folder.glob(f"module_*{DUMPED}") if _DUMP_NUMBER.match(file.name)]
    if not files:
        raise UnavailableError(f"the backend gives no HLO text and dumped no {DUMPED}")
    # By number: as a name, `module_10` sorts before `module_9`.
    newest = max(files, key=lambda file: int(_DUMP_NUMBER.match(file.name)[1]))  # type: ignore[index]
    return newest.read_text()


def render_cost(compiled: Any) -> str:
    """Return XLA's estimates (flops, bytes accessed ...) as a JSON object."""
    estimates = compiled.cost_analysis()
    if isinstance(estimates, list):  # a list of one up to 0.4.35
        estimates = estimates[0] if estimates else {}
    return json.dumps({k: float(v) for k, v in sorted((estimates or {}).items())}, indent=1)


def render_memory(compiled: Any) -> str:
    """Return the sizes XLA planned, in bytes, as a JSON object.

    Raises:
        UnavailableError: If there is no memory analysis.
    """
    analysis = compiled.memory_analysis()
    # The peak is missing before 0.7.2.
    sizes = {name: getattr(analysis, name) for name in MEMORY_FIELDS if hasattr(analysis, name)}
    if not sizes:
        raise UnavailableError("no memory analysis")
    return json.dumps(sizes, indent=1)


def render_layout(lowered: Any, compiled: Any) -> str:
    """Return shardings, memory kinds and donation of inputs and outputs, as a JSON object.

    Args:
        lowered: The lowered program, for the shapes of outputs.
        compiled: The executable, for everything else.

    Returns:
        `inputs` and `outputs` as device-to-tile maps (see `describe_sharding`), null for an
        input that the program does not use, `unspecified` where XLA does not report it;
        `input_memories` and `output_memories` as the release names them; `donated` by input;
        `input_hlo` and `output_hlo` as HLO spells shardings over several devices, null for others.
    """
    inputs = _pair_leaves(compiled.input_shardings, compiled.args_info)
    outputs = _pair_leaves(compiled.output_shardings, lowered.out_info)
    layout = {
        "inputs": [_describe_place(sharding, array) for sharding, array in inputs],
        "outputs": [_describe_place(sharding, array) for sharding, array in outputs],
        "input_memories": [_find_memory_kind(sharding) for sharding, _ in inputs],
        "output_memories": [_find_memory_kind(sharding) for sharding, _ in outputs],
        "donated": [bool(getattr(array, "donated", False)) for _, array in inputs],
        "input_hlo": [_render_hlo_sharding(sharding, array) for sharding, array in inputs],
        "output_hlo": [_render_hlo_sharding(sharding, array) for sharding, array in outputs],
    }
    return json.dumps(layout, indent=1)


def _pair_leaves(shardings: Any, arrays: Any) -> list[tuple[Any, Any]]:
    """Return each array with its sharding, None for an unused array."""
    # None must be a leaf: an unused argument has no sharding, and the trees would not align.
    both = (
        jax.tree_util.tree_leaves(tree, is_leaf=lambda leaf: leaf is None)
        for tree in (shardings, arrays)
    )
    return [(place, array) for place, array in zip(*both, strict=True) if array is not None]


def _describe_place(sharding: Any, array: Any) -> str | None:
    if sharding is None:
        return None
    if not hasattr(sharding, "devices_indices_map"):  # chosen by XLA, which does not report it
        return "unspecified"
    return describe_sharding(sharding, tuple(array.shape))


def _render_hlo_sharding(sharding: Any, array: Any) -> str | None:
    """Return a sharding as HLO spells it, which optimised HLO no longer states from jax 0.12.0."""
    if len(getattr(sharding, "device_set", ())) <= 1:
        return None
    try:  # there is no public name for it
        return str(sharding._to_xla_hlo_sharding(len(array.shape)))
    except Exception:  # an unknown kind, or a missing method
        return None


def _find_memory_kind(sharding: Any) -> str | None:
    """Return a memory kind as the release names it, the default kind if the sharding has none."""
    if sharding is None:
        return None
    kind = getattr(sharding, "memory_kind", None)
    if kind is None:
        try:
            kind = next(iter(sharding.device_set)).default_memory().kind
        except Exception:  # topology devices and some backends have no memories
            return None
    return str(kind)


PLATFORMS = ("tpu", "cuda", "rocm")


class CrossLowering:
    """Lowers a traced program for other platforms.

    Locations contain the place where the lowering was called. A module that differs from the
    program's own module in locations only gets the text of the latter, so that equal modules are
    equal texts.

    Args:
        traced: Traced program.
        lowered: The program lowered for the platform of the cell; None if lowering failed.
        text: The StableHLO of `lowered`.
    """

    def __init__(self, traced: Any, lowered: Any | None, text: str) -> None:
        self._traced = traced
        self._lowered = lowered
        self._text = text

    @cached_property
    def _own(self) -> str:
        """The program's own module without locations."""
        return "" if self._lowered is None else _render_without_locations(self._lowered)

    def make_renderers(self) -> dict[str, Callable[[], str]]:
        """Return functions that render the StableHLO for each platform, by name of the artifact."""
        return {f"stablehlo-{name}": partial(self._render, name) for name in PLATFORMS}

    def _render(self, platform: str) -> str:
        with warnings.catch_warnings(), reuse_context(self._lowered):
            warnings.simplefilter("ignore")  # already shown for the platform that it runs on
            lowered = self._traced.lower(lowering_platforms=(platform,))
        return (
            self._text
            if _render_without_locations(lowered) == self._own
            else render_stablehlo(lowered)
        )


def _render_without_locations(lowered: Any) -> str:
    """Return a module without its locations."""
    operation = lowered.compiler_ir("stablehlo").operation
    return str(operation.get_asm(print_generic_op_form=True, large_elements_limit=None))


@contextmanager
def reuse_context(lowered: Any | None) -> Iterator[None]:
    """Lower in the MLIR context of an existing module, which saves half of the time.

    A new context takes as long as lowering a small program. A release without `make_ir_context`
    creates a context for each lowering as usual.

    Args:
        lowered: A lowered program; nothing is done for None.
    """
    make = getattr(mlir, "make_ir_context", None)
    if make is None or lowered is None:
        yield
        return
    # There is no parameter for the context, so the private factory is replaced meanwhile.
    mlir.make_ir_context = lambda: lowered.compiler_ir("stablehlo").context
    try:
        yield
    finally:
        mlir.make_ir_context = make
