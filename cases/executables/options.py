"""`compiler_options` of `jit` and `compile`: accepted values, effects, and precedence."""

import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp

from conformance.kit import Observed, defaults, probe

from ._helpers import describe, vector

defaults(platforms=("cpu",))


def _compile(options):
    return jax.jit(lambda x: jnp.tanh(x) * 3).lower(vector()).compile(compiler_options=options)


VALUES = {
    "bool": {"xla_embed_ir_in_executable": True},
    "bool_text": {"xla_embed_ir_in_executable": "true"},
    "int": {"xla_backend_optimization_level": 0},
    "int_text": {"xla_backend_optimization_level": "0"},
    "none": None,
    "empty": {},
    "other_text": {"xla_embed_ir_in_executable": "perhaps"},
    "float_for_int": {"xla_backend_optimization_level": 0.5},
    "list": {"xla_backend_optimization_level": [0]},
    "unknown": {"xla_no_such_flag": True},
    "flag_of_a_gpu": {"xla_gpu_enable_latency_hiding_scheduler": True},
    "with_dashes": {"--xla_embed_ir_in_executable": True},
}


@probe(
    source="jax-ml/jax@fff33f90b209",
    records="which values are accepted differs between releases",
)
def option_values(env):
    """Values of compiler options: of the right type, as text, of a wrong type, unknown."""
    return {name: describe(lambda o=o: _compile(o) and 0) for name, o in VALUES.items()}


@probe(source="jax-ml/jax@fff33f90b209")
def option_effect(env):
    """`xla_dump_to` as a compiler option writes the modules of this program only."""
    with tempfile.TemporaryDirectory() as folder:
        _compile(None)
        before = len(list(Path(folder).iterdir()))
        _compile({"xla_dump_to": folder})
        names = [file.name for file in Path(folder).iterdir()]
    result = {"before": before, "optimized": any("after_opt" in name for name in names)}
    return Observed(result, reference={"before": 0, "optimized": True})
