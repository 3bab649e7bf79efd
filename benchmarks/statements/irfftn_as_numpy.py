"""Inverse real FFTs of arrays that are not Hermitian are those of NumPy on a CPU."""

import jax.numpy as jnp
import numpy as np

generator = np.random.default_rng(0)
for shape in ((4, 3), (3, 4, 3), (2, 3, 4, 5)):
    x = generator.normal(size=shape) + 1j * generator.normal(size=shape)
    print(shape, np.allclose(jnp.fft.irfftn(x), np.fft.irfftn(x), atol=1e-5))
    print(shape, np.allclose(jnp.fft.irfft2(x), np.fft.irfft2(x), atol=1e-5))
