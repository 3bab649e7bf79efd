from jax.extend.core.primitives import call_p, xla_pmap_p

print(call_p, xla_pmap_p)
