import jax

cache = {}


@jax.jit
def cached_square(x):
    if x not in cache:
        cache[x] = x * x
    return cache[x]


print(cached_square(3.0))
