"""Kernels for the tests: bytecode by name, and modules that embed it."""

from __future__ import annotations

import base64
import json
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
MODULE = """HloModule m, entry_computation_layout={{(f32[32,128]{{1,0}})->f32[32,128]{{1,0}}}}

ENTRY %main (a: f32[32,128]) -> f32[32,128] {{
  %a = f32[32,128]{{1,0}} parameter(0)
  ROOT %k = f32[32,128]{{1,0}} custom-call(%a), custom_call_target="{target}", \
operand_layout_constraints={{f32[32,128]{{1,0}}}}, backend_config={config}
}}
"""


@cache
def bodies() -> dict[str, str]:
    """Return the bytecode in base64, by `<dialect> <release> <name>`."""
    found: dict[str, str] = json.loads((HERE / "bodies.json").read_text(encoding="utf-8"))
    return found


def body(name: str) -> bytes:
    """Return the bytecode of a kernel."""
    return base64.b64decode(bodies()[name])


def mosaic(text: str, **more: object) -> str:
    """Return an HLO module with a Mosaic kernel, given in base64."""
    config = {"custom_call_config": {"body": text, **more}}
    return MODULE.format(target="tpu_custom_call", config=json.dumps(config))


def triton(data: bytes, more: str = "num_stages = 3 : i32, num_warps = 4 : i32") -> str:
    """Return an HLO module with a Triton kernel."""
    escaped = "".join(
        chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:02X}" for byte in data
    )
    config = f'{{grid_x = 4 : i32, ir = "{escaped}", name = "kernel", {more}}}'
    return MODULE.format(target="__gpu$xla.gpu.triton", config=config)


def embedded(name: str) -> str:
    """Return an HLO module with one of the kernels."""
    return mosaic(bodies()[name]) if name.startswith("mosaic") else triton(body(name))
