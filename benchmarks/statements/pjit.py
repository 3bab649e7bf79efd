"""`pjit` works on both sides."""

import warnings

warnings.simplefilter("ignore")

from jax.experimental.pjit import pjit

print(pjit(lambda x: x + 1)(1))
