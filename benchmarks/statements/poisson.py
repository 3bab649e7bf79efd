"""The functions of the Poisson distribution that exist on both sides."""

from jax.scipy.stats import poisson

print(poisson.pmf(2, 1.5).round(5), poisson.logpmf(2, 1.5).round(5), poisson.cdf(2, 1.5).round(5))
