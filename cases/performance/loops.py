"""Loops: what a step costs, and whether the cost of all grows as their number does.

Most reports about time are about loops. A step that copies the carry makes a loop quadratic, while
the optimised HLO stays the same.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Program, defaults, program

defaults(platforms=("cpu",), rtol=1e-4, atol=1e-5)

STEPS = (256, 512, 1024, 2048)
ROWS = (512, 1024, 2048, 4096)
X = np.linspace(-1, 1, 64, dtype=np.float32)
ROW = np.linspace(-1, 1, 8, dtype=np.float32)
"""A row has fewer than 256 bytes, as the slices that 0.11.1 writes slowly."""


def _weights(n):
    return np.random.RandomState(n).uniform(-0.1, 0.1, (n, n)).astype(np.float32)


@program(source="jax-ml/jax#36799", sizes=STEPS)
def fori_loop_of_small_steps(env, size):
    """Ten operations on 64 numbers a step: the loop's own cost dominates."""

    def step(_, x):
        for _ in range(5):
            x = 0.5 * x + 0.1
        return x

    return Program(
        lambda x: lax.fori_loop(0, size, step, x), (X,), reference=np.full(64, 0.2, np.float32)
    )


@program(source="jax-ml/jax#36799", sizes=STEPS)
def scan_of_small_steps(env, size):
    """A step reads an element, and writes one."""

    def step(carry, x):
        carry = 0.5 * carry + x
        return carry, carry

    def sums(xs):
        out, total = [], 0.0
        for x in xs:
            total = 0.5 * total + x
            out.append(total)
        return np.array(out, np.float32)

    xs = np.linspace(0, 1, size, dtype=np.float32)
    return Program(lambda xs: lax.scan(step, 0.0, xs)[1], (xs,), reference=sums)


@program(source="jax-ml/jax#25190", sizes=STEPS)
def while_loop_with_a_condition(env, size):
    """The condition reads an array of the carry in each step."""

    def run(x):
        state = lax.while_loop(
            lambda s: (s[0] < size) & (s[1].sum() < 1e6), lambda s: (s[0] + 1, 0.5 * s[1]), (0, x)
        )
        return state[1]

    return Program(run, (X,), reference=np.zeros(64, np.float32))


@program(source="jax-ml/jax#40101", sizes=ROWS)
def rows_written_in_a_loop(env, size):
    """`dynamic_update_slice` of a row a step: in place, the time grows with the rows.

    If each step copies the whole array, it grows with their square.
    """

    def run(x):
        return lax.fori_loop(
            0, size, lambda i, a: lax.dynamic_update_slice(a, x[None] * i, (i, 0)),
            jnp.zeros((size, 8), jnp.float32),
        )  # fmt: skip

    return Program(run, (ROW,), reference=lambda x: np.arange(size, dtype=np.float32)[:, None] * x)


@program(source="jax-ml/jax#40101", sizes=ROWS)
def rows_read_and_written_in_a_loop(env, size):
    """A step reads the row before the one that it writes."""

    def step(i, a):
        return a.at[i].set(0.5 * a[i - 1] + 1)

    def run(x):
        return lax.fori_loop(1, size, step, jnp.zeros((size, 8), jnp.float32).at[0].set(x))

    def rows(x):
        out = [x]
        for _ in range(size - 1):
            out.append(0.5 * out[-1] + 1)
        return np.stack(out)

    return Program(run, (ROW,), reference=rows)


@program(source="jax-ml/jax#40101", sizes=ROWS)
def rows_written_in_a_scan(env, size):
    """As a carry of a scan, written at an index that the scan reads."""

    def step(a, i):
        return a.at[i].add(ROW), a[i, 0]

    def run(order):
        return lax.scan(step, jnp.zeros((size, 8), jnp.float32), order)[0]

    order = np.random.RandomState(0).permutation(size).astype(np.int32)
    return Program(run, (order,), reference=np.tile(ROW, (size, 1)))


@program(source="jax-ml/jax#40101", sizes=ROWS)
def elements_scattered_in_a_loop(env, size):
    """One element of a vector a step."""

    def run(order):
        def step(i, a):
            return a.at[order[i]].set(i * 1.0)

        return lax.fori_loop(0, size, step, jnp.zeros(8 * size, jnp.float32))

    order = 8 * np.random.RandomState(1).permutation(size).astype(np.int32)

    def scattered(order):
        out = np.zeros(8 * size, np.float32)
        out[order] = np.arange(size)
        return out

    return Program(run, (order,), reference=scattered)


@program(source="jax-ml/jax#26021", sizes=(64, 128, 256, 512))
def small_products_in_a_loop(env, size):
    """A product of 16 x 16 a step."""
    w = _weights(16)

    def products(x):
        for _ in range(size):
            x = np.tanh(x @ w + 1)
        return x

    x = np.ones((16, 16), np.float32)
    return Program(
        lambda x: lax.fori_loop(0, size, lambda _, x: jnp.tanh(x @ w + 1), x), (x,),
        reference=products,
    )  # fmt: skip


@program(source="jax-ml/jax#31282", sizes=ROWS)
def linearized_writes(env, size):
    """The derivative of a scan that reads an element of its carry, and writes the next one."""

    def write(x):
        def step(carry, _):
            i, a = carry
            return (i + 1, a.at[i].set(2 * jnp.tanh(a[i // 2]))), None

        return lax.scan(step, (0, x), None, length=size)[0][1]

    def run(x):
        return jax.linearize(write, x)[1](jnp.ones_like(x))

    def slopes(x):
        x, slope = x.astype(np.float64), np.ones(size)
        for i in range(size):
            value = np.tanh(x[i // 2])
            slope[i] = 2 * (1 - value**2) * slope[i // 2]
            x[i] = 2 * value
        return slope

    return Program(run, (np.linspace(0, 1, size, dtype=np.float32),), reference=slopes)


@program(source="jax-ml/jax#26145", sizes=STEPS)
def gradient_of_a_scan(env, size):
    """The forward scan stores its carries, the backward scan reads them."""

    def loss(x):
        out, _ = lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=size)
        return out.sum()

    def slope(x):
        x, grad = x.astype(np.float64), np.ones(64)
        for _ in range(size):
            x, grad = np.sin(x), grad * np.cos(x)
        return grad.astype(np.float32)

    return Program(jax.grad(loss), (X,), reference=slope)


@program(source="jax-ml/jax#26145", sizes=(16, 32, 64, 128))
def gradient_of_a_scan_with_remat(env, size):
    """Each step is computed again in the backward pass."""
    w = _weights(16)

    def loss(x):
        step = jax.checkpoint(lambda c, _: (jnp.tanh(c @ w + c), None))
        return lax.scan(step, x, None, length=size)[0].sum()

    def slope(x):
        xs = [x.astype(np.float64)]
        for _ in range(size):
            xs.append(np.tanh(xs[-1] @ w + xs[-1]))
        grad = np.ones_like(xs[0])
        for after in reversed(xs[1:]):
            inner = grad * (1 - after**2)
            grad = inner @ w.T + inner
        return grad.astype(np.float32)

    return Program(jax.grad(loss), (np.full((4, 16), 0.1, np.float32),), reference=slope)


@program(source="jax-ml/jax#26145", sizes=(16, 32, 64, 128))
def batch_of_while_loops(env, size):
    """`vmap` of loops of different lengths: all run as long as the longest."""

    def halve(x):
        return lax.while_loop(lambda x: x > 1, lambda x: x / 2, x)

    xs = np.geomspace(1.5, 1e6, size).astype(np.float32)

    def halved(xs):
        xs = xs.copy()
        while (xs > 1).any():
            xs = np.where(xs > 1, xs / 2, xs)
        return xs

    return Program(jax.vmap(halve), (xs,), reference=halved)


@program(source="jax-ml/jax#36799", sizes=STEPS)
def branches_in_a_scan(env, size):
    """A `switch` of three branches in each step."""
    branches = [lambda c: c + 1, lambda c: 0.5 * c, lambda c: -c]

    def run(choices):
        return lax.scan(lambda c, i: (lax.switch(i, branches, c), None), X, choices)[0]

    def chosen(choices):
        x = X.copy()
        for i in choices:
            x = (x + 1, 0.5 * x, -x)[i]
        return x

    choices = (np.arange(size) % 3).astype(np.int32)
    return Program(run, (choices,), reference=chosen)


@program(source="jax-ml/jax#36799", sizes=(8, 16, 32, 64))
def scan_within_a_scan(env, size):
    """As many inner steps as outer ones: the exponent is 2."""

    def inner(c, _):
        return 0.5 * c + 0.1, None

    def outer(c, _):
        return lax.scan(inner, c, None, length=size)[0], None

    return Program(
        lambda x: lax.scan(outer, x, None, length=size)[0], (X,),
        reference=lambda x: np.full(64, 0.2) + (x - 0.2) * 0.5 ** (size * size),
    )  # fmt: skip


@program(source="jax-ml/jax#36799", sizes=(1024, 2048, 4096))
def associative_scan(env, size):
    """The prefix sums of a vector."""
    xs = np.ones(size, np.float32)
    return Program(
        lambda xs: lax.associative_scan(jnp.add, xs), (xs,), reference=lambda xs: xs.cumsum()
    )


@program(source="jax-ml/jax#36799", sizes=STEPS)
def callback_in_a_loop(env, size):
    """A call of Python in each step."""

    def run(x):
        def step(_, x):
            return jax.pure_callback(lambda x: x * np.float32(0.5), x, x)

        return lax.fori_loop(0, size // 8, step, x)

    return Program(run, (X,), reference=lambda x: x * 0.5 ** (size // 8))
