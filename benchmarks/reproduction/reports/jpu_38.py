import jax.numpy as jnp
import jpu
import jpu.numpy as jnpu

u = jpu.UnitRegistry()
x = jnp.array([1.7, -2.2]) * u.m
print(jnpu.sum(x))
