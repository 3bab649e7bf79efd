import jax


def f(a, b, c):
    return (a + c) - b * c


print("without jit           ", f(1, 2, 3))
print("static_argnums=(0, 1) ", jax.jit(f, static_argnums=(0, 1))(1, 2, 3))
print("static_argnums=(1, 0) ", jax.jit(f, static_argnums=(1, 0))(1, 2, 3))
eqns = jax.make_jaxpr(f, static_argnums=(1, 0))(1, 2, 3).jaxpr.eqns
print("constants of the jaxpr:", int(eqns[0].invars[0].val), int(eqns[1].invars[0].val))
