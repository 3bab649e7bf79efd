import os

os.environ["XLA_FLAGS"] = "--xla_cpu_use_thunk_runtime=false"
import jax.numpy as jnp

print(jnp.arange(4).sum())
