# jax.new_ref is new. I overwrite a reference and take the gradient.
import jax


@jax.jit
def overwritten(x):
    box = jax.new_ref(x)
    box[...] = 2.0
    return jax.freeze(box)


print("gradient", jax.grad(overwritten)(1.0))
