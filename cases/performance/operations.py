"""Single operations: time with the number of elements, memory, and what the compiler plans."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Program, defaults, program

defaults(platforms=("cpu", "tpu", "cuda"), rtol=1e-3, atol=1e-4)

SIZES = (4096, 16384, 65536, 262144)
SIDES = (32, 64, 128, 256)


def _uniform(*shape):
    """Return the same numbers in each case, whatever ran before it in its process."""
    return np.random.RandomState(0).uniform(-1, 1, shape).astype(np.float32)


def _matrix(size):
    return _uniform(size, size)


def _vector_and_indices(size):
    """Return a vector, and as many indices into it."""
    random = np.random.RandomState(0)
    at = random.randint(0, size, size).astype(np.int32)
    return random.uniform(-1, 1, size).astype(np.float32), at


@program(source="jax-ml/jax#26145", sizes=SIZES)
def elementwise_chain(env, size):
    """Eight operations that one fusion computes."""

    def chain(x, n):
        return n.exp(-(x * x)) * n.cos(x) + n.tanh(x) / (1 + x * x)

    x = _uniform(size)
    return Program(lambda x: chain(x, jnp), (x,), reference=lambda x: chain(x, np))


@program(source="jax-ml/jax#26145", sizes=SIZES)
def softmax(env, size):
    """Rows of 64: two reductions, and the exponential of each element."""
    x = _uniform(size).reshape(-1, 64)

    def exact(x):
        e = np.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    return Program(jax.nn.softmax, (x,), reference=exact)


@program(source="jax-ml/jax#26145", sizes=SIZES)
def sums(env, size):
    """Along both axes of a matrix, and of all."""
    x = _uniform(size).reshape(64, -1)
    return Program(
        lambda x: (x.sum(0), x.sum(1), x.sum()), (x,),
        reference=lambda x: (x.sum(0), x.sum(1), x.sum(dtype=np.float64)),
    )  # fmt: skip


@program(source="jax-ml/jax#26145", sizes=SIZES)
def cumulative_sum(env, size):
    """Of a vector."""
    return Program(jnp.cumsum, (_uniform(size),), reference=lambda x: x.cumsum(dtype=np.float64))


@program(source="jax-ml/jax#26145", sizes=SIZES)
def sort(env, size):
    """Of a vector."""
    return Program(jnp.sort, (_uniform(size),), reference=np.sort)


@program(source="jax-ml/jax#26145", sizes=SIZES)
def argsort(env, size):
    """Of a vector, with its indices."""
    return Program(jnp.argsort, (_uniform(size),), reference=lambda x: np.argsort(x, kind="stable"))


@program(source="jax-ml/jax#26145", sizes=SIZES)
def scatter_add(env, size):
    """As many updates as elements, at random indices."""

    def added(x, at):
        out = np.zeros(size)
        np.add.at(out, at, x)
        return out

    return Program(
        lambda x, at: jnp.zeros(size).at[at].add(x), _vector_and_indices(size), reference=added
    )


@program(source="jax-ml/jax#26145", sizes=SIZES)
def gather(env, size):
    """As many reads as elements, at random indices."""
    x, at = _vector_and_indices(size)
    return Program(lambda x, at: x[at], (x, at), reference=lambda x, at: x[at])


@program(source="jax-ml/jax#26145", sizes=SIZES)
def segment_sum(env, size):
    """Sixteen elements a segment."""
    ids = (np.arange(size) // 16).astype(np.int32)

    def run(x, ids):
        return jax.ops.segment_sum(x, ids, size // 16, indices_are_sorted=True)

    return Program(run, (_uniform(size), ids), reference=lambda x, _: x.reshape(-1, 16).sum(1))


@program(source="jax-ml/jax#26145", sizes=SIDES)
def product(env, size):
    """Of two square matrices: the exponent is near 3."""
    a = _matrix(size)
    return Program(lambda a: a @ a, (a,), reference=lambda a: a.astype(np.float64) @ a)


@program(source="jax-ml/jax#26145", sizes=(64, 256, 1024, 4096))
def batch_of_small_products(env, size):
    """As many products of 8 x 8."""
    a = _uniform(size, 8, 8)
    return Program(lambda a: a @ a, (a,), reference=lambda a: a @ a)


@program(source="jax-ml/jax#26145", sizes=(8, 16, 32, 64))
def contraction(env, size):
    """Three operands of an einsum."""
    a = _matrix(size)
    return Program(
        lambda a: jnp.einsum("ij,jk,kl->il", a, a, a), (a,), reference=lambda a: a @ a @ a
    )


@program(source="jax-ml/jax#26145", sizes=(16, 32, 64, 128))
def convolution(env, size):
    """A kernel of 3 x 3 over an image of four channels: the exponent is 2."""
    random = np.random.RandomState(0)
    image = random.uniform(-1, 1, (1, 4, size, size)).astype(np.float32)
    kernel = random.uniform(-1, 1, (4, 4, 3, 3)).astype(np.float32)

    def exact(image, kernel):
        windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3), axis=(2, 3))
        return np.einsum("bchwxy,ocxy->bohw", windows, kernel)

    return Program(
        lambda i, k: lax.conv_general_dilated(i, k, (1, 1), "VALID"), (image, kernel),
        reference=exact,
    )  # fmt: skip


@program(source="jax-ml/jax#9575", sizes=SIZES)
def fft(env, size):
    """Of a vector."""
    return Program(
        lambda x: jnp.abs(jnp.fft.fft(x)), (_uniform(size),),
        reference=lambda x: np.abs(np.fft.fft(x)),
    )  # fmt: skip


@program(source="jax-ml/jax#26145", sizes=SIDES, platforms=("cpu",))
def cholesky(env, size):
    """Of a positive definite matrix, by LAPACK."""
    a = _matrix(size)
    return Program(
        jnp.linalg.cholesky, (a @ a.T + size * np.eye(size, dtype=np.float32),),
        reference=np.linalg.cholesky,
    )  # fmt: skip


@program(source="jax-ml/jax#26145", sizes=SIDES, platforms=("cpu",))
def solve(env, size):
    """A linear system with one right side."""
    a = _matrix(size) + 2 * size**0.5 * np.eye(size, dtype=np.float32)
    return Program(jnp.linalg.solve, (a, np.ones(size, np.float32)), reference=np.linalg.solve)


@program(source="jax-ml/jax#26162", sizes=(16, 32, 64, 128))
def concatenation_of_many(env, size):
    """As many operands: the time to compile."""
    parts = [np.full(4, i, np.float32) for i in range(size)]
    return Program(jnp.concatenate, (parts,), reference=np.concatenate)


@program(source="jax-ml/jax#26145", sizes=SIZES)
def padded_windows(env, size):
    """The largest of each five neighbours."""

    def windows(x):
        return lax.reduce_window(x, -jnp.inf, lax.max, (5,), (1,), "SAME")

    def exact(x):
        padded = np.pad(x, 2, constant_values=-np.inf)
        return np.lib.stride_tricks.sliding_window_view(padded, 5).max(-1)

    return Program(windows, (_uniform(size),), reference=exact)
