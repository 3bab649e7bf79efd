import jax
from jax.scipy.special import ndtri

jax.config.update("jax_debug_infs", True)
print("median of the normal distribution:", ndtri(0.5))
