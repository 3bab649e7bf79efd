# numpyro 0.18.0
import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro import handlers


def model():
    mu = numpyro.sample("mu", dist.Normal(0.0, 1.0))
    return numpyro.sample("x", dist.Normal(mu, 1.0), obs=jnp.array(0.5))


trace = handlers.trace(handlers.seed(model, jax.random.PRNGKey(0))).get_trace()
print(sorted(trace))
