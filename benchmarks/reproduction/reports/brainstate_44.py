import jax
import jax.numpy as jnp

def current_jax_trace():
    main = jax.core.thread_local_state.trace_state.trace_stack.stack[-1]
    return main.with_cur_sublevel()

print("outside:", type(current_jax_trace()).__name__)

@jax.jit
def f(x):
    print("inside:", type(current_jax_trace()).__name__)
    return x * 2

print(f(jnp.ones(3)))
