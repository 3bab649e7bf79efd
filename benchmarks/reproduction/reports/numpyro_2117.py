# JAX pxla is deprecated from 0.8.2 onwards: pytest turns the warning into an error
import warnings
warnings.filterwarnings("error", category=DeprecationWarning)
import jax
print("jax", jax.__version__)
from jax.interpreters.pxla import xla_pmap_p
print(xla_pmap_p)
