import jax
from jax import core

new_var = core.gensym()
aval = core.ShapedArray((3,), jax.numpy.dtype("float32"))
print(new_var(aval).aval)
