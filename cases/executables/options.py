"""`compiler_options` of `jit` and `compile`: accepted values, effects, and precedence."""

import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp

from conformance.kit import Observed, defaults, deviation, probe

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


NO_SUCH_LEVELS = deviation(
    "jax<0.11.1",
    outcome="ok",
    reason="a level was the number that XLA uses, and efforts were numbers from -1 to 1",
    issue="jax-ml/jax@48b8101ffa5b",
)


@probe(source="jax-ml/jax@48b8101ffa5b", deviations=[NO_SUCH_LEVELS])
def effort_of_the_compiler(env):
    """The option `optimization_level` takes "O1"; `exec_time_optimization_effort` is removed."""
    options = {
        "name": {"optimization_level": "O1"},
        "number": {"optimization_level": 19},
        "effort": {"exec_time_optimization_effort": 0.0},
    }
    observed = {
        name: describe(lambda o=o: jax.jit(jnp.tanh, compiler_options=o)(vector()))
        for name, o in options.items()
    }
    return Observed(observed, {"name": "works", "number": "works", "effort": "JaxRuntimeError"})
