import jax

double = jax.jit(fun=lambda x: 2 * x)
print(double(3))
