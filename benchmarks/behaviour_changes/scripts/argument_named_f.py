import jax


def apply(f, x):
    return f * x


print(jax.jit(apply)(f=2.0, x=3.0))
