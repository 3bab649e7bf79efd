"""Filters, spectra, transforms and interpolation against SciPy."""

from __future__ import annotations

import jax
import jax.image
import jax.numpy as jnp
import jax.scipy.fft
import jax.scipy.integrate
import jax.scipy.interpolate
import jax.scipy.ndimage
import jax.scipy.signal
import numpy as np
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.ndimage
import scipy.signal

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import compare_values

defaults(source="jax-ml/jax@edda69ef833f", rtol=1e-4, atol=1e-5)

HALF_OF_THE_ROWS = 2.5
RNG = np.random.RandomState(0)
SIGNAL, OTHER = RNG.uniform(-1, 1, 12), RNG.uniform(-1, 1, 5)
IMAGE, KERNEL = RNG.uniform(-1, 1, (5, 6)), RNG.uniform(-1, 1, (3, 2))
TONE = np.sin(np.arange(32) / 3) + RNG.uniform(-0.1, 0.1, 32)
FILTERS = {
    "convolve_full": lambda s: s.convolve(SIGNAL, OTHER),
    "convolve_same": lambda s: s.convolve(SIGNAL, OTHER, mode="same"),
    "convolve_valid": lambda s: s.convolve(SIGNAL, OTHER, mode="valid"),
    "convolve_by_fft": lambda s: s.convolve(SIGNAL, OTHER, method="fft"),
    "fftconvolve": lambda s: s.fftconvolve(IMAGE, KERNEL, mode="same"),
    "fftconvolve_axis": lambda s: s.fftconvolve(IMAGE, IMAGE, axes=1),
    "correlate": lambda s: s.correlate(SIGNAL, OTHER),
    "correlate_same": lambda s: s.correlate(SIGNAL, OTHER, mode="same"),
    "convolve2d": lambda s: s.convolve2d(IMAGE, KERNEL),
    "convolve2d_same": lambda s: s.convolve2d(IMAGE, KERNEL, mode="same"),
    "correlate2d": lambda s: s.correlate2d(IMAGE, KERNEL),
    "correlate2d_valid": lambda s: s.correlate2d(IMAGE, KERNEL, mode="valid"),
    "detrend": lambda s: s.detrend(TONE),
    "detrend_constant": lambda s: s.detrend(IMAGE, axis=0, type="constant"),
    "welch": lambda s: s.welch(TONE, fs=2.0, nperseg=8),
    "csd": lambda s: s.csd(TONE, TONE[::-1], nperseg=8),
    "stft": lambda s: s.stft(TONE, nperseg=8),
    "istft_of_stft": lambda s: s.istft(s.stft(TONE, nperseg=8)[2], nperseg=8),
}


@probe(params=[*FILTERS])
def filtered(env, name):
    """A filter or a spectral estimate of SciPy."""
    fn = FILTERS[name]
    value = jax.jit(lambda: fn(jax.scipy.signal))()
    return Observed(value, round_to_float32(fn(scipy.signal)))


ONE_SEGMENT_BY_DEFAULT = deviation(
    outcome="ok",
    reason="the default is one segment with all samples; that of SciPy is 256",
    issue="jax-ml/jax#40012",
)


@probe(source="jax-ml/jax#40012", params=["welch", "csd"], deviations=[ONE_SEGMENT_BY_DEFAULT])
def default_length_of_segments(env, name):
    """Without `nperseg`, the spectrum of 600 samples is one segment; SciPy averages several."""
    x = np.sin(np.arange(600) ** 2 / 50)
    arguments = (x, x[::-1]) if name == "csd" else (x,)
    observed = jax.jit(getattr(jax.scipy.signal, name))(*arguments)[-1]
    return Observed(observed, round_to_float32(getattr(scipy.signal, name)(*arguments)[-1]))


def round_to_float32(result):
    """Return a result with the precision of jax."""
    return jax.tree_util.tree_map(
        lambda a: a.astype(np.complex64 if np.iscomplexobj(a) else np.float32), result
    )


TRANSFORMS = {
    "dct": lambda f, a: f.dct(a),
    "dct_ortho": lambda f, a: f.dct(a, norm="ortho", axis=0),
    "dct_padded": lambda f, a: f.dct(a, n=8),
    "idct": lambda f, a: f.idct(a),
    "dctn": lambda f, a: f.dctn(a, norm="ortho"),
    "idctn": lambda f, a: f.idctn(a, axes=(0,)),
}


@probe(source="jax-ml/jax@6d83027b69b2", params=[*TRANSFORMS])
def cosine_transform(env, name):
    """A discrete cosine transform of a matrix."""
    fn = TRANSFORMS[name]
    return compare_values(lambda a: fn(jax.scipy.fft, a), lambda a: fn(scipy.fft, a), IMAGE)


COORDINATES = np.array([[0.25, -1.25, 3.75, 5.25], [1.75, 2.25, -0.75, 6.25]])


@probe(source="jax-ml/jax#1711", params=["constant", "nearest", "mirror", "reflect", "wrap"])
def map_coordinates(env, mode):
    """Interpolation of an image at points in and outside of it, of order 0 and 1.

    The modes `constant` and `wrap` are those of `numpy.pad`; SciPy calls them `grid-constant` and
    `grid-wrap`.
    """

    def run(order):
        return lambda a, at: jax.scipy.ndimage.map_coordinates(a, at, order, mode=mode, cval=9.0)

    few = IMAGE.astype(np.float32), COORDINATES.astype(np.float32)
    value = jax.jit(lambda a, at: {f"order_{n}": run(n)(a, at) for n in (0, 1)})(*few)
    name = {"wrap": "grid-wrap", "constant": "grid-constant"}.get(mode, mode)
    reference = {
        f"order_{n}": scipy.ndimage.map_coordinates(
            IMAGE.astype(np.float32).astype(np.float64), COORDINATES, order=n, mode=name, cval=9.0
        )
        for n in (0, 1)
    }
    return Observed(value, reference)


@probe(source="jax-ml/jax@2c5fe8c40d8b", params=["linear", "nearest"])
def grid_interpolator(env, method):
    """An interpolator on a regular grid, with a fill value outside of it."""
    axes = np.array([0.0, 1.0, 2.5, 3.0, 4.0]), np.array([0.0, 0.5, 1.0, 2.0, 3.0, 5.0])
    points = np.array([[0.25, 0.75], [3.75, 4.5], [2.25, 2.75], [6.0, 1.0]])

    def run(module, table, at):
        given = {"method": method, "bounds_error": False, "fill_value": -1.0}
        return module.RegularGridInterpolator(axes, table, **given)(at)

    return compare_values(
        lambda table, at: run(jax.scipy.interpolate, table, at),
        lambda table, at: run(scipy.interpolate, table, at),
        IMAGE,
        points,
    )


AXIS_TAKEN_TO_INCREASE = deviation(
    outcome="ok",
    reason="the axis is searched as if it increased, and no check refuses another",
    issue="jax-ml/jax#36499",
)


@probe(source="jax-ml/jax#36499", deviations=[AXIS_TAKEN_TO_INCREASE])
def interpolator_on_a_decreasing_grid(env):
    """An interpolator on an axis that decreases, which SciPy accepts, returns NaN silently."""
    axis, table, at = np.array([3.0, 2, 1]), np.array([30.0, 20, 10]), np.array([[1.5], [3]])
    value = jax.scipy.interpolate.RegularGridInterpolator((axis,), table)(at)
    return Observed(np.nan_to_num(value, nan=-777), np.array([15.0, 30]))


@probe(source="jax-ml/jax@975dae34a47d")
def trapezoid(env):
    """The trapezoidal rule along an axis, with points and with a step."""
    points = np.array([0.0, 0.5, 1.5, 2.0, 3.5, 4.0])

    def run(module, y, x):
        return {"points": module.trapezoid(y, x), "step": module.trapezoid(y, dx=0.25, axis=0)}

    return compare_values(
        lambda y, x: run(jax.scipy.integrate, y, x),
        lambda y, x: run(scipy.integrate, y, x),
        IMAGE,
        points,
    )


def interpolate_image(image, size, kernel, support):
    """Return an image resized along axis 0 by an antialiased kernel, in NumPy float64.

    Args:
        image: Array of shape (rows, columns).
        size: Rows of the result.
        kernel: Function of distances in rows of the coarser grid.
        support: Distance at which the kernel ends.
    """
    rows = image.shape[0]
    scale = max(rows / size, 1)
    centers = (np.arange(size) + 0.5) * rows / size - 0.5
    distances = np.abs(centers[:, None] - np.arange(rows)) / scale
    weights = np.where(distances < support, kernel(distances), 0)
    return (weights / weights.sum(1, keepdims=True)) @ image


def keys_cubic(x):
    """Return the kernel of Keys (1981) with a = -0.5."""
    near, far = (1.5 * x - 2.5) * x * x + 1, ((-0.5 * x + 2.5) * x - 4) * x + 2
    return np.where(x < 1, near, far)


def lanczos(radius):
    """Return the kernel of Lanczos of a radius."""
    return lambda x: np.sinc(x) * np.sinc(x / radius)


RESIZING = {
    "linear": (lambda x: 1 - x, 1),
    "cubic": (keys_cubic, 2),
    "lanczos3": (lanczos(3), 3),
    "lanczos5": (lanczos(5), 5),
}


@probe(source="jax-ml/jax#3703", params=[*RESIZING])
def resize(env, method):
    """An image of five rows, resized to eight and to three."""
    kernel, support = RESIZING[method]
    sizes = (8, 3)

    def run(a):
        return {f"to_{n}": jax.image.resize(a, (n, 6), method) for n in sizes}

    def reference(a):
        return {f"to_{n}": interpolate_image(a, n, kernel, support) for n in sizes}

    return compare_values(run, reference, IMAGE)


@probe(source="jax-ml/jax#3703")
def resize_nearest(env):
    """The nearest rows: of each new row, the old one that its center is in."""
    sizes = (8, 3)

    def pick(a, n):
        return a[np.floor((np.arange(n) + 0.5) * 5 / n).astype(int)]

    return compare_values(
        lambda a: {f"to_{n}": jax.image.resize(a, (n, 6), "nearest") for n in sizes},
        lambda a: {f"to_{n}": pick(a, n) for n in sizes},
        IMAGE,
    )


@probe(source="jax-ml/jax#3703")
def scale_and_translate(env):
    """An image that is doubled and shifted by linear interpolation, without antialiasing."""

    def run(a):
        return jax.image.scale_and_translate(
            a, (10, 6), (0,), jnp.array([2.0]), jnp.array([1.0]), "linear", antialias=False
        )

    def reference(a):
        # Row i of the result is the point (i + 0.5 - 1) / 2 - 0.5 of the old rows; 0 outside.
        at = (np.arange(10) + 0.5 - 1) / 2 - 0.5
        weights = np.maximum(1 - np.abs(at[:, None] - np.arange(5)), 0)
        weights /= weights.sum(1, keepdims=True)
        inside = abs(at - 2) <= HALF_OF_THE_ROWS
        return np.where(inside[:, None], weights @ a, 0)

    return compare_values(run, reference, IMAGE)
