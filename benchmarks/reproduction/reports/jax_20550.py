import jax
import jax.numpy as jnp
from einops import rearrange

patches = jnp.linspace(-1.0, 2.0, 8)
image = rearrange(patches, "(h w) -> h w", h=2)
print(jnp.clip(image, a_min=0.0, a_max=1.0).round(3))
print(jax.devices())
