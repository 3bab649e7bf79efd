# Every step is printed when I call `total`, none when I differentiate it.
import jax


def body(c, _):
    jax.debug.print("c = {c}", c=c, ordered=True)
    return c * 2, None


def total(x):
    return jax.lax.scan(body, x, length=2)[0]


value, slope = jax.value_and_grad(total)(1.0)
jax.effects_barrier()
print("value", float(value), "slope", float(slope))
