import jax

jax.config.update("jax_enable_x64", True)

import jax.scipy.fft
import numpy as np
import scipy.fft

x = np.ones(3)
ours = jax.scipy.fft.idct(x, n=10)
theirs = scipy.fft.idct(x, n=10)
err = np.abs(ours - theirs).max()
assert err < 1e-13, f"idct is off by {err:.1e} in double precision"
