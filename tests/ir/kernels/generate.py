"""Make the kernels of `bodies.json`: `python - tpu|cuda [NAME...] < generate.py > part.json`.

It runs inside an environment with a release of jax and prints the bytecode of every kernel in
base64, by `<dialect> <release> <name>`. No device is needed: nothing is compiled. The places of
the source are neutral, because they get into the bytecode; `elsewhere` has others.
"""

from __future__ import annotations

import base64
import json
import os
import re
import sys

SOURCE = """
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl

F32 = jnp.float32


def made(kernel, out, *inputs, **more):
    return pl.pallas_call(kernel, out_shape=out, **PARAMS, **more), inputs


def plain(scale=2.0, op=jnp.add, swapped=False, exp=False, late=False, grid=4, rows=8, dtype=F32):
    def kernel(x, y, o):
        if late:
            b, a = y[...], x[...]
        else:
            a, b = x[...], y[...]
        b = b * jnp.asarray(scale, dtype)
        if exp:
            b = jnp.exp(b)
        o[...] = op(b, a) if swapped else op(a, b)

    shape = jax.ShapeDtypeStruct((32, 128), dtype)
    spec = pl.BlockSpec((rows, 128), lambda i: (i, 0))
    return made(
        kernel, shape, shape, shape, grid=(grid,), in_specs=[spec, spec], out_specs=spec
    )


def loop(times=4, condition=False):
    def kernel(x, o):
        def body(i, total):
            return total + x[pl.ds(pl.multiple_of(i * 8, 8), 8), :]

        total = lax.fori_loop(0, times, body, jnp.zeros((8, 128), F32))
        if condition:
            @pl.when(pl.program_id(0) == 0)
            def _():
                o[...] = jnp.zeros((8, 128), F32)
        o[...] = total

    inside, outside = jax.ShapeDtypeStruct((32, 128), F32), jax.ShapeDtypeStruct((8, 128), F32)
    specs = [pl.BlockSpec(s.shape, lambda i: (0, 0)) for s in (inside, outside)]
    return made(kernel, outside, inside, grid=(2,), in_specs=specs[:1], out_specs=specs[1])


def repeated():
    def kernel(x, o):
        o[...] = lax.while_loop(lambda s: s[0] < 10, lambda s: (s[0] + 1, s[1] * 1.5),
                                (jnp.int32(0), x[...]))[1]

    shape = jax.ShapeDtypeStruct((8, 128), F32)
    return made(kernel, shape, shape)


def reduced(op=jnp.sum):
    def kernel(x, o):
        o[...] = op(x[...], axis=1, keepdims=True) * jnp.ones((8, 128), F32)

    shape = jax.ShapeDtypeStruct((8, 128), F32)
    return made(kernel, shape, shape)
"""
CALLS = {
    "plain": "plain()",
    "elsewhere": "plain()",
    "scale": "plain(scale=3.0)",
    "subtract": "plain(op=jnp.subtract)",
    "swapped": "plain(op=jnp.subtract, swapped=True)",
    "exp": "plain(exp=True)",
    "late": "plain(late=True)",
    "grid": "plain(grid=2)",
    "window": "plain(grid=2, rows=16)",
    "dtype": "plain(grid=2, rows=16, dtype=jnp.bfloat16)",
    "loop": "loop()",
    "condition": "loop(condition=True)",
    "repeated": "repeated()",
    "reduced": "reduced()",
    "largest": "reduced(jnp.max)",
}
BODY = {"tpu": r"body\\22: \\22([^\\]*)", "cuda": r'ir = "((?:[^"\\]|\\.)*)"'}


def bytecode(platform: str, text: str) -> str:
    """Return the bytecode in a module, in base64."""
    found = re.search(BODY[platform], text)
    if found is None:
        raise SystemExit(f"no kernel in {text[:500]}")
    if platform == "tpu":
        return found[1]
    escaped = re.compile(rb"\\([0-9A-F]{2})|\\(.)", re.DOTALL)
    raw = escaped.sub(lambda m: bytes.fromhex(m[1].decode()) if m[1] else m[2], found[1].encode())
    return base64.b64encode(raw).decode()


def parameters(platform: str) -> dict[str, object]:
    """Return what makes `pallas_call` take the compiler that is meant."""
    if platform == "tpu":
        return {}
    from jax._src.pallas.triton import core, pallas_call_registration  # noqa: PLC0415

    info = getattr(pallas_call_registration, "gpu_info_lib", None)
    if info is not None:  # a release that asks for a device
        info.get_gpu_info = lambda: type("H100", (), {"compute_capability": 90})
    name = "CompilerParams" if hasattr(core, "CompilerParams") else "TritonCompilerParams"
    return {"compiler_params": getattr(core, name)()}


def main() -> None:
    """Print the kernels."""
    platform, *names = sys.argv[1:]
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax  # noqa: PLC0415 - its settings come from the environment

    dialect = {"tpu": "mosaic", "cuda": "triton"}[platform]
    made = {}
    for name in names or CALLS:
        place = "/elsewhere/other.py" if name == "elsewhere" else "/src/kernels.py"
        source = "\n" * 40 + SOURCE if name == "elsewhere" else SOURCE
        space: dict[str, object] = {"PARAMS": parameters(platform)}
        exec(compile(source, place, "exec"), space)  # noqa: S102 - our own text
        call, inputs = eval(CALLS[name], space)  # noqa: S307
        lowered = jax.jit(call).trace(*inputs).lower(lowering_platforms=(platform,))
        module = lowered.compiler_ir("stablehlo").operation
        text = module.get_asm(print_generic_op_form=True, large_elements_limit=None)
        made[f"{dialect} {jax.__version__} {name}"] = bytecode(platform, text)
    sys.stdout.write(json.dumps(made, indent=1))


if __name__ == "__main__":
    main()
