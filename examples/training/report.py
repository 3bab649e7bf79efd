"""What the package computes, printed: each call of `snapshot` is compared between releases."""

import conformance
import jax
from training import example, gradient, loss

w, x, y = example()
print("loss", conformance.snapshot(jax.jit(loss), w, x, y))
print("gradient", conformance.snapshot(gradient, w, x, y))
