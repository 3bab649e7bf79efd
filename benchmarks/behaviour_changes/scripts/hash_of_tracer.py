import jax

seen = {}


@jax.jit
def f(x):
    seen[x] = "x"
    return x * 2


print(f(3.0))
