"""The tests of the package, as any package has them."""

import jax
import numpy as np
import pytest
from training import example, gradient, loss, norms, weights

several = pytest.mark.skipif(jax.device_count() < 4, reason="needs 4 devices")


@several
def test_the_gradient_is_that_of_all_rows():
    w, x, y = example()
    expected = jax.grad(loss)(w, x, y)
    np.testing.assert_allclose(gradient(w, x, y), expected, rtol=1e-5)


def test_a_step_down_makes_the_loss_smaller():
    w, x, y = example()
    assert loss(w - 0.1 * jax.grad(loss)(w, x, y), x, y) < loss(w, x, y)


@pytest.mark.parametrize("name", ["first", "second"])
def test_norms(name):
    (given,) = weights()
    assert norms(given)[name] > 1.5
