import jax.scipy.fft
import numpy as np
import scipy.fft

x = np.arange(10.0, dtype=np.float32).reshape(5, 2)
for name in ("dctn", "idctn"):
    ours = getattr(jax.scipy.fft, name)(x, s=(12, 7), axes=(-2, -1))
    theirs = getattr(scipy.fft, name)(x, s=(12, 7), axes=(-2, -1))
    print(name, ours.shape, theirs.shape)
    np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-3)
