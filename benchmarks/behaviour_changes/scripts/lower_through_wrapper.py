import functools

import jax


def logged(f):
    @functools.wraps(f)
    def wrapper(*args):
        print("called")
        return f(*args)

    return wrapper


@logged
@jax.jit
def double(x):
    return x * 2


print(double.lower(3.0).compile()(3.0))
