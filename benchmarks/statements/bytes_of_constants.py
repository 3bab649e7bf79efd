"""A constant of a jaxpr has no `tobytes` on 0.7.2 and 0.8.0."""

import jax
import numpy as np

jaxpr = jax.make_jaxpr(lambda x: x + np.arange(3, dtype=np.float32))(np.float32(1))
literals = [v.val for equation in jaxpr.eqns for v in equation.invars if hasattr(v, "val")]
constant = [*jaxpr.consts, *literals][0]
print(len(constant.tobytes()) if hasattr(constant, "tobytes") else "no tobytes")
