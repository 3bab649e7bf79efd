"""What a release can tell of a traced, lowered or compiled program, as text.

Each function looks at what is there, never at the version, and raises when a release or backend
cannot tell; nothing is understood here, that is the orchestrator's part.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import re
import tempfile
from functools import cache
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

import jax

from conformance.worker.jaxprs import jaxpr_json
from conformance.worker.values import describe_sharding

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any
MEMORY_FIELDS = (
    "generated_code_size_in_bytes",
    "argument_size_in_bytes",
    "output_size_in_bytes",
    "alias_size_in_bytes",
    "temp_size_in_bytes",
    "peak_memory_in_bytes",
)
LARGEST_HLO = 64 * 2**20
BYTES_AN_ELEMENT = 8
"""A low estimate of what one element of a large constant takes in text."""
OPTIONS_LIVE_IN = ("jaxlib._hlo", "jaxlib._jax", "jaxlib.xla_extension")
DUMPED = "after_optimizations.txt"
_ELIDED = re.compile(r"\[([\d,]*)\]\S* constant\(\{\.\.\.\}\)")
_DUMP_NUMBER = re.compile(r"module_(\d+)\.")


class NotTold(Exception):  # noqa: N818 - a limit of the backend, not an error
    """A release or backend does not tell this; the message says what is missing."""


def jaxpr(traced: Any) -> str:
    """Return a traced program's jaxpr as `conformance.worker.jaxprs` documents it."""
    return jaxpr_json(traced.jaxpr)


def stablehlo(lowered: Any) -> str:
    """Return a lowered program in MLIR's generic form: nothing elided, with locations."""
    operation = lowered.compiler_ir("stablehlo").operation
    return str(
        operation.get_asm(
            print_generic_op_form=True, large_elements_limit=None, enable_debug_info=True
        )
    )


class _Backend:
    """What this process has learnt of its backend.

    Attributes:
        hides_text: Whether it gives no text of what it compiled, but dumps it.
    """

    hides_text = False


def compiled_telling(lowered: Any, compile_: Callable[..., Any]) -> tuple[Any, Callable[[], str]]:
    """Compile a program such that its optimised module can be told.

    Where an earlier program of this process showed that the backend hides the text, XLA is told to
    dump it at once: it need not compile twice.

    Args:
        lowered: The program.
        compile_: Compiles it, with compiler options if there are any.

    Returns:
        The executable, and what gives the text or raises `NotTold`.
    """
    if _Backend.hides_text:
        with tempfile.TemporaryDirectory() as folder, contextlib.suppress(Exception):
            made = _compile_dumping(lowered, compile_, folder)
            text = hlo_from_dump(Path(folder))
            return made, lambda: text
    made = compile_(lowered)
    return made, lambda: hlo(lowered, made)


def hlo(lowered: Any, compiled: Any) -> str:
    """Return the optimised module: as `compiled.as_text()`, but with its large constants.

    Args:
        lowered: What was compiled: where a backend does not give the text it is compiled once
            more, to be dumped.
        compiled: The executable.

    Returns:
        The text of the first module; large constants are left as `{...}` where all would take
        more than 64 MiB.

    Raises:
        NotTold: If the backend neither gives nor dumps the text.
    """
    text = compiled.as_text()
    if text is None:
        _Backend.hides_text = True
        return _dumped(lowered)
    elided = sum(prod(map(int, filter(None, found.split(",")))) for found in _ELIDED.findall(text))
    if not elided or elided * BYTES_AN_ELEMENT > LARGEST_HLO:
        return str(text)
    modules = hlo_modules(compiled)
    options = _print_options()
    if len(modules) != 1 or options is None:
        return str(text)
    options.print_large_constants = True
    whole = modules[0].to_string(options)
    return str(whole if len(whole) <= LARGEST_HLO else text)


def hlo_modules(compiled: Any) -> list[Any]:
    """Return the modules of an executable; none where it does not give them."""
    try:
        return list(compiled.runtime_executable().hlo_modules())
    except Exception:  # noqa: BLE001 - jaxlib's error types move from release to release
        return []


def _print_options() -> Any:
    kind = _options_type()
    return None if kind is None else kind()


@cache
def _options_type() -> Any:
    for name in OPTIONS_LIVE_IN:
        try:
            found = getattr(importlib.import_module(name), "HloPrintOptions", None)
        except ImportError:
            continue
        if found is not None:
            return found
    return None


def _dumped(lowered: Any) -> str:
    """Compile once more with XLA told to dump: compile-only CUDA, 0.4.38 to 0.8.1."""
    with tempfile.TemporaryDirectory() as folder:
        _compile_dumping(lowered, _compile, folder)
        return hlo_from_dump(Path(folder))


def _compile(lowered: Any, options: Mapping[str, Any]) -> Any:
    return lowered.compile(compiler_options=options)


def _compile_dumping(lowered: Any, compile_: Callable[..., Any], folder: str) -> Any:
    options = {"xla_dump_to": folder, "xla_dump_hlo_as_text": True}
    try:
        return compile_(lowered, {**options, "xla_dump_large_constants": True})
    except Exception:  # noqa: BLE001 - an option that older releases do not have
        return compile_(lowered, options)


def hlo_from_dump(folder: Path) -> str:
    """Return the optimised module that XLA dumped last.

    Args:
        folder: Where `--xla_dump_to` points.

    Returns:
        Its text.

    Raises:
        NotTold: If none was dumped there.
    """
    files = [file for file in folder.glob(f"module_*{DUMPED}") if _DUMP_NUMBER.match(file.name)]
    if not files:
        raise NotTold(f"the backend gives no HLO text and dumped no {DUMPED}")
    newest = max(files, key=lambda file: int(_DUMP_NUMBER.match(file.name)[1]))  # type: ignore[index]
    return newest.read_text()


def cost(compiled: Any) -> str:
    """Return XLA's estimates (flops, bytes accessed ...) as a JSON object."""
    said = compiled.cost_analysis()
    if isinstance(said, list):  # a list of one up to 0.4.35
        said = said[0] if said else {}
    return json.dumps({k: float(v) for k, v in sorted((said or {}).items())}, indent=1)


def memory(compiled: Any) -> str:
    """Return the sizes XLA planned, in bytes, as a JSON object.

    Raises:
        NotTold: If there is no memory analysis.
    """
    said = compiled.memory_analysis()
    sizes = {name: getattr(said, name) for name in MEMORY_FIELDS if hasattr(said, name)}
    if not sizes:
        raise NotTold("no memory analysis")
    return json.dumps(sizes, indent=1)


def layout(lowered: Any, compiled: Any) -> str:
    """Return where inputs and outputs lie, as a JSON object.

    Args:
        lowered: Told of the outputs' shapes.
        compiled: Told of the rest.

    Returns:
        `inputs` and `outputs` as device-to-tile maps (see `describe_sharding`), null for an
        input that the program does not use, `unspecified` where XLA does not tell;
        `input_memories` and `output_memories` as the release names them; `donated` by input;
        `input_hlo` and `output_hlo` as HLO spells shardings over several devices, null for others.
    """
    inputs = _placed(compiled.input_shardings, compiled.args_info)
    outputs = _placed(compiled.output_shardings, lowered.out_info)
    layout = {
        "inputs": [_place(sharding, array) for sharding, array in inputs],
        "outputs": [_place(sharding, array) for sharding, array in outputs],
        "input_memories": [_memory_kind(sharding) for sharding, _ in inputs],
        "output_memories": [_memory_kind(sharding) for sharding, _ in outputs],
        "donated": [bool(getattr(array, "donated", False)) for _, array in inputs],
        "input_hlo": [_hlo_sharding(sharding, array) for sharding, array in inputs],
        "output_hlo": [_hlo_sharding(sharding, array) for sharding, array in outputs],
    }
    return json.dumps(layout, indent=1)


def _placed(shardings: Any, arrays: Any) -> list[tuple[Any, Any]]:
    """Return each array with its sharding, None for one that is not used."""
    both = (
        jax.tree_util.tree_leaves(tree, is_leaf=lambda leaf: leaf is None)
        for tree in (shardings, arrays)
    )
    return [(place, array) for place, array in zip(*both, strict=True) if array is not None]


def _place(sharding: Any, array: Any) -> str | None:
    if sharding is None:
        return None
    if not hasattr(sharding, "devices_indices_map"):  # left to XLA, which does not tell
        return "unspecified"
    return describe_sharding(sharding, tuple(array.shape))


def _hlo_sharding(sharding: Any, array: Any) -> str | None:
    """Return how HLO spells a sharding, which optimised HLO of jax 0.12.0 no longer states."""
    if len(getattr(sharding, "device_set", ())) <= 1:
        return None
    try:  # there is no public name for it
        return str(sharding._to_xla_hlo_sharding(len(array.shape)))  # noqa: SLF001
    except Exception:  # noqa: BLE001 - of a kind that no release spells, or not there
        return None


def _memory_kind(sharding: Any) -> str | None:
    """Return a memory kind as the release names it, also where a sharding leaves it open."""
    if sharding is None:
        return None
    kind = getattr(sharding, "memory_kind", None)
    if kind is None:
        try:
            kind = next(iter(sharding.device_set)).default_memory().kind
        except Exception:  # noqa: BLE001 - topology devices and some backends have no memories
            return None
    return str(kind)
