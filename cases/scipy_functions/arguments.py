"""Arguments that functions of `jax.scipy` and `jax.nn` refused or misread."""

from __future__ import annotations

import jax
import jax.scipy.fft
import jax.scipy.signal
import jax.scipy.spatial.transform
import jax.scipy.special
import jax.scipy.stats
import numpy as np
import scipy.fft
import scipy.signal
import scipy.special
import scipy.stats
from jax import lax

from conformance.kit import Observed, Program, defaults, deviation, probe, program, raises

defaults(platforms=("cpu",))

IMAGINARY_PARTS_DROPPED = deviation(
    "jax<0.10",
    params=["dct", "idct", "dctn"],
    outcome="ok",
    reason="the real part was transformed",
    issue="jax-ml/jax@160ab443b4c6",
)
SCALED_AS_ORTHONORMAL = deviation(
    "jax<0.4.31",
    params=["idct_backward"],
    outcome="ok",
    reason="every norm except None was that of an orthonormal transform",
    issue="jax-ml/jax@2efd1ec011eb",
)
COSINE_TRANSFORMS = {
    "dct": (lambda f, x: f.dct(x), np.complex64([1 + 1j, 2, -1j])),
    "idct": (lambda f, x: f.idct(x), np.complex64([1 + 1j, 2, -1j])),
    "dctn": (lambda f, x: f.dctn(x), np.complex64([[1 + 1j, 2], [0, -1j]])),
    "idct_backward": (lambda f, x: f.idct(x, norm="backward"), np.float32([1, 2, 4])),
}


@probe(
    source="jax-ml/jax@160ab443b4c6",
    params=[*COSINE_TRANSFORMS],
    rtol=1e-5,
    atol=1e-5,
    deviations=[IMAGINARY_PARTS_DROPPED, SCALED_AS_ORTHONORMAL],
)
def complex_or_scaled_transform(env, name):
    """Cosine transforms of complex numbers, and with `norm="backward"`, against SciPy.

    Up to 0.9.2 the imaginary part was silently dropped.
    """
    fn, x = COSINE_TRANSFORMS[name]
    exact = fn(scipy.fft, x.astype(np.result_type(x, np.float64)))
    return Observed(jax.jit(lambda x: fn(jax.scipy.fft, x))(x), reference=exact)


UNKNOWN_NORM_ACCEPTED = deviation(
    "jax<0.4.31",
    outcome="ok",
    reason="an unknown norm was taken for None or for that of an orthonormal transform",
    issue="jax-ml/jax@326559ca47f3",
)


@program(source="jax-ml/jax@326559ca47f3", deviations=[UNKNOWN_NORM_ACCEPTED])
def forward_norm(env):
    """`jax.scipy.fft.dct(norm="forward")`, which is not implemented, is a ValueError."""
    return Program(
        lambda x: jax.scipy.fft.dct(x, norm="forward"),
        (np.float32([1, 2]),),
        reference=raises("ValueError", match="not implemented"),
    )


COMPUTED_IN_FLOAT32 = deviation(
    "jax<0.4.34",
    outcome="ok",
    reason="the transform was computed in float32",
    issue="jax-ml/jax#23895",
)


@probe(source="jax-ml/jax#23895", x64=True, deviations=[COMPUTED_IN_FLOAT32])
def idct_in_float64(env):
    """`jax.scipy.fft.idct` of float64 is float64 from 0.4.34 on; before, it was float32."""
    x = np.arange(1, 5, dtype=np.float64)
    result = np.asarray(jax.jit(jax.scipy.fft.idct)(x))
    exact = scipy.fft.idct(x)
    result = {"dtype": str(result.dtype), "exact": bool(abs(result - exact).max() < 1e-13)}
    return Observed(result, reference={"dtype": "float64", "exact": True})


TAIL_CANCELLED = deviation(
    "jax<0.4.34",
    outcome="ok",
    reason="the tail was 1 plus an error function near -1",
    issue="jax-ml/jax@ca97af9d4369",
)


@probe(source="jax-ml/jax@ca97af9d4369", rtol=1e-4, atol=0, deviations=[TAIL_CANCELLED])
def tail_of_gelu(env):
    """`jax.nn.gelu(x, approximate=False)` at -6 is -6e-9 from 0.4.34 on; before, it was 0."""
    x = np.float32([-8, -6, -3])
    result = jax.jit(lambda x: jax.nn.gelu(x, approximate=False))(x)
    return Observed(result, reference=np.float64(x) * scipy.special.ndtr(np.float64(x)))


NAN_AFTER_INFINITY = deviation(
    "jax<0.5.3",
    outcome="ok",
    reason="a limit was selected before the domain was checked",
    issue="jax-ml/jax@f608a8c502ae",
)


@probe(source="jax-ml/jax@f608a8c502ae", deviations=[NAN_AFTER_INFINITY])
def incomplete_gamma_outside(env):
    """`gammainc(nan, inf)`, `gammaincc(nan, inf)` and `gammaincc(1, -1)` are NaN from 0.5.3 on."""

    @jax.jit
    def outside(a, x):
        return {
            "lower": jax.scipy.special.gammainc(a, x),
            "upper": jax.scipy.special.gammaincc(a, x),
        }

    a, x = np.float32([np.nan, 1]), np.float32([np.inf, -1])
    nans = np.full(2, np.nan, np.float32)
    return Observed(outside(a, x), reference={"lower": nans, "upper": nans})


GAMMA_OF_REAL_NUMBERS = deviation(
    "jax<0.10",
    reason="only real arguments were accepted",
    issue="jax-ml/jax@548287273c88",
)


@probe(source="jax-ml/jax@548287273c88", rtol=1e-4, deviations=[GAMMA_OF_REAL_NUMBERS])
def gamma_of_complex(env):
    """`jax.scipy.special.gamma` accepts complex numbers from 0.10.0 on."""
    x = np.complex64([1 + 1j, -0.5 + 2j])
    result = jax.jit(jax.scipy.special.gamma)(x)
    return Observed(result, reference=scipy.special.gamma(x.astype(np.complex128)))


NO_TRIALS_HAD_ROUNDING = deviation(
    "jax<0.4.33",
    params=["binom"],
    outcome="ok",
    reason="the logarithm of a certain event had the rounding error of gammaln",
    issue="jax-ml/jax@3a0e4376cded",
)
NO_TRIALS_WERE_REFUSED = deviation(
    "jax<0.4.33",
    params=["betabinom"],
    outcome="ok",
    reason="without trials, the result was NaN",
    issue="jax-ml/jax@3a0e4376cded",
)
CERTAIN_EVENTS = {
    "binom": (np.float32([0, 0, 3]), np.float32([0, 3, 3]), np.float32([0.5, 0, 1])),
    "betabinom": (np.float32([0]), np.float32([0]), np.float32([10]), np.float32([5])),
}


@probe(
    source="jax-ml/jax@3a0e4376cded",
    params=[*CERTAIN_EVENTS],
    rtol=0,
    deviations=[NO_TRIALS_HAD_ROUNDING, NO_TRIALS_WERE_REFUSED],
)
def certain_event(env, name):
    """`logpmf` of a certain event, such as no success in no trials, is exactly 0 from 0.4.33 on."""
    result = jax.jit(getattr(jax.scipy.stats, name).logpmf)(*CERTAIN_EVENTS[name])
    return Observed(result, reference=np.zeros_like(CERTAIN_EVENTS[name][0]))


OTHER_SIGN = deviation(
    "jax<0.4.31",
    outcome="ok",
    reason="the last component changed its sign, not the other three",
    issue="jax-ml/jax@5ba26953befc",
)


@probe(source="jax-ml/jax@5ba26953befc", deviations=[OTHER_SIGN])
def quaternion_of_an_inverse(env):
    """The quaternion of `Rotation.inv()` has the sign of SciPy from 0.4.31 on, the other before."""
    rotation = jax.scipy.spatial.transform.Rotation.from_quat(np.float32([0, 0, 0.6, 0.8]))
    return Observed(rotation.inv().as_quat(), reference=np.array([0, 0, -0.6, 0.8]))


WINDOW_COMPARED_WITH_TEXT = deviation(
    "jax<0.6.1",
    error="ValueError",
    match="truth value of an array",
    reason="the window was compared with the name of the default",
    issue="jax-ml/jax@f7f57d1dbd5d",
)


@probe(
    source="jax-ml/jax@f7f57d1dbd5d", rtol=1e-4, atol=1e-5, deviations=[WINDOW_COMPARED_WITH_TEXT]
)
def window_of_istft(env):
    """`jax.scipy.signal.istft` accepts an array as its window from 0.6.1 on."""
    x, window = np.complex64(np.arange(20).reshape(5, 4) % 7), np.ones(8, np.float32)
    result = jax.scipy.signal.istft(x, window=window)[1]
    return Observed(result, reference=scipy.signal.istft(x.astype(complex), window=window)[1])


NO_PIVOTING = deviation(
    "jax<0.5",
    params=["zero_pivot"],
    outcome="ok",
    reason="the algorithm of Thomas divides by each pivot",
    issue="jax-ml/jax@c1de7c733d6b",
)
AT_LEAST_THREE = deviation(
    "jax<0.5",
    params=["two_equations"],
    error="ValueError",
    match="must be >= 3",
    reason="at least three equations were required",
    issue="jax-ml/jax@c1de7c733d6b",
)
TRIDIAGONALS = {
    "zero_pivot": ([0, 1, 1], [0, 1, 1], [1, 1, 0]),
    "two_equations": ([0, 1], [2, 2], [1, 0]),
}


@probe(
    source="jax-ml/jax@c1de7c733d6b",
    params=[*TRIDIAGONALS],
    rtol=1e-5,
    deviations=[NO_PIVOTING, AT_LEAST_THREE],
)
def tridiagonal_system(env, name):
    """`lax.linalg.tridiagonal_solve` with a pivot of 0, and of two equations, from 0.5.0 on."""
    lower, diagonal, upper = (np.float32(d) for d in TRIDIAGONALS[name])
    right = np.arange(1, len(diagonal) + 1, dtype=np.float32)[:, None]
    matrix = np.diag(diagonal) + np.diag(lower[1:], -1) + np.diag(upper[:-1], 1)
    result = jax.jit(lax.linalg.tridiagonal_solve)(lower, diagonal, upper, right)
    return Observed(result, reference=np.linalg.solve(np.float64(matrix), right))


NUMBER_IS_NO_SEQUENCE = deviation(
    "jax<0.8",
    params=["number"],
    error="TypeError",
    match="'int' object is not subscriptable",
    reason="the lengths had to be a sequence",
    issue="jax-ml/jax@dac1f4cf850a",
)
LENGTHS = {"number": {"x": (4,), "given": {"s": 3}}}


@probe(
    source="jax-ml/jax@dac1f4cf850a",
    params=LENGTHS,
    rtol=1e-5,
    atol=1e-5,
    deviations=[NUMBER_IS_NO_SEQUENCE],
)
def lengths_and_axes_of_dctn(env, x, given):
    """`dctn` takes a number as `s` from 0.8.0 on; before, it was a TypeError."""
    x = np.arange(np.prod(x), dtype=np.float32).reshape(x)
    exact = scipy.fft.dctn(x.astype(np.float64), **given)
    return Observed(jax.scipy.fft.dctn(x, **given), reference=exact)


SCALAR_WAS_LAST = deviation(
    "jax<0.4.34",
    error="TypeError",
    match="unexpected keyword argument 'scalar_first'",
    reason="the argument was added in 0.4.34",
    issue="jax-ml/jax@2ff26ff3e0aa",
)


@probe(source="jax-ml/jax@2ff26ff3e0aa", deviations=[SCALAR_WAS_LAST])
def quaternion_with_the_scalar_first(env):
    """`Rotation.as_quat(scalar_first=True)` works from 0.4.34 on, a TypeError before."""
    rotation = jax.scipy.spatial.transform.Rotation.from_quat(np.float32([0, 0.6, 0, 0.8]))
    result = rotation.as_quat(scalar_first=True)
    return Observed(result, reference=np.float64([0.8, 0, 0.6, 0]))


POLES_HAD_A_SIGN = deviation(
    "jax<0.4.36",
    outcome="ok",
    reason="the sign of gamma was 1 at its poles, and at -0.0",
    issue="jax-ml/jax@c5e8ae80f994",
)


@probe(source="jax-ml/jax@c5e8ae80f994", deviations=[POLES_HAD_A_SIGN])
def signs_of_gamma(env):
    """`gammasgn` is NaN at negative integers and -infinity, and -1 at -0.0, from 0.4.36 on.

    Before, it was 1.
    """
    x = np.float32([-1, -0.0, 0, -0.5, -np.inf])
    result = np.nan_to_num(jax.jit(jax.scipy.special.gammasgn)(x), nan=-777)
    return Observed(result, reference=np.float32([-777, -1, 1, -1, -777]))


POLES_DIVIDED = deviation(
    "jax>=0.4.36",
    outcome="ok",
    reason="the quotient of two values of gamma at poles is NaN",
    issue="jax-ml/jax@c5e8ae80f994",
)


@probe(source="jax-ml/jax@c5e8ae80f994", deviations=[POLES_DIVIDED])
def rising_factorial_of_a_pole(env):
    """`poch(-1, 2)` is NaN from 0.4.36 on; before, it was 0, which is -1 * 0, as in SciPy."""
    result = np.nan_to_num(jax.jit(jax.scipy.special.poch)(np.float32(-1), np.float32(2)), nan=-777)
    return Observed(result, reference=scipy.special.poch(np.float64(-1), np.float64(2)))


NUMBER_HAD_NO_DTYPE = deviation(
    "jax<0.8",
    error="AttributeError",
    match="'float' object has no attribute 'dtype'",
    reason="the rule of the derivative read the dtype of a Python number",
)


@probe(source="jax-ml/jax@eedfeb6db0bc", rtol=1e-5, deviations=[NUMBER_HAD_NO_DTYPE])
def derivative_of_expi(env):
    """`jax.grad(expi)` of a Python number works from 0.8.0 on; before, it was an AttributeError."""
    return Observed(jax.grad(jax.scipy.special.expi)(2.0), reference=np.exp(np.float64(2)) / 2)


NO_ALGORITHM = deviation(
    "jax<0.10.1",
    error="TypeError",
    match="type <class 'str'>",
    reason="the argument was added in 0.10.1",
    issue="jax-ml/jax@6b02fbe17d88",
)


@probe(source="jax-ml/jax@6b02fbe17d88", deviations=[NO_ALGORITHM])
def standardized_in_two_passes(env):
    """`jax.nn.standardize(algorithm="stable")` is accurate for numbers with a large mean."""
    x = np.float32([4096, 4097, 4098, 4099])
    exact = (x - x.mean(dtype=np.float64)) / np.sqrt(x.var(dtype=np.float64) + 1e-5)
    result = jax.jit(lambda x: jax.nn.standardize(x, algorithm="stable"))(x)
    return Observed(result, reference=exact)
