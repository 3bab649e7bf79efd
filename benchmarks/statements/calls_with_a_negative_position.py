"""On 0.4.30 a second call with another static argument is refused, or gives what the first gave."""

import jax

f = jax.jit(lambda *args: sum(args), static_argnums=-1)
print(f(1, 2, 3))
try:
    print(f(1, 2, 4))
except ValueError as error:
    print(type(error).__name__)
