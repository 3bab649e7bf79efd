"""Arrays, attention and convolution in float64, and gradients in the form that cases observe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from . import _tape as tape

if TYPE_CHECKING:
    from collections.abc import Callable


def draw(env: Any, *shape: int, seed: int = 0, scale: float = 1.0) -> Any:
    """Return normal float32 numbers, multiples of 1/64: exact in bfloat16 up to 4."""
    return (np.round(env.rng(seed).normal(size=shape) * scale * 64) / 64).astype(np.float32)


def pull(fn: Callable[..., Any], *args: Any, cotangent: Any) -> tuple[Any, Any]:
    """Return the value of a jitted function, and its gradients for a cotangent."""

    @jax.jit
    def both(args: Any, cotangent: Any) -> Any:
        out, transpose = jax.vjp(fn, *args)
        return out, transpose(jnp.asarray(cotangent, out.dtype))

    return both(args, cotangent)


def make_mask(queries: int, keys: int, *, causal: bool = False, window: Any = None) -> Any:
    """Return which keys a query sees, as `dot_product_attention` documents it."""
    q, k = np.arange(queries)[:, None], np.arange(keys)
    mask = (k <= q) if causal else np.ones((queries, keys), bool)
    if window is not None:
        before, after = window
        mask &= (k >= q - before) & (k <= q + after)
    return mask


def attend(q: Any, k: Any, v: Any, *, mask: Any = True, bias: Any = 0.0, scale: Any = None) -> Any:
    """Return attention on the tape: queries and keys are (batch, length, heads, width)."""
    scale = 1 / np.sqrt(q.shape[-1]) if scale is None else scale
    heads = np.repeat(np.arange(k.shape[2]), q.shape[2] // k.shape[2])
    logits = tape.einsum("btnh,bsnh->bnts", q, k[:, :, heads]) * scale + bias
    weights = tape.softmax(tape.where(np.broadcast_to(mask, logits.shape), logits, -1e9))
    return tape.einsum("bnts,bsnh->btnh", weights, v[:, :, heads])


def convolve(x: Any, kernel: Any, *, stride=1, pad=(0, 0), dilate=1, upsample=1, groups=1) -> Any:
    """Return a 1-D convolution on the tape: NWC inputs and WIO kernels, all options of XLA."""
    n, width, channels = x.shape
    taps, _, features = kernel.shape
    spread = (width - 1) * upsample + 1
    length = (spread + sum(pad) - (taps - 1) * dilate - 1) // stride + 1
    place = np.arange(length)[:, None] * stride + np.arange(taps) * dilate - pad[0]
    seen = (place >= 0) & (place < spread) & (place % upsample == 0)
    patches = x[:, np.clip(place // upsample, 0, width - 1)] * seen[:, :, None]
    patches = patches.reshape(n, length, taps, groups, channels // groups)
    kernel = kernel.reshape(taps, channels // groups, groups, features // groups)
    return tape.einsum("nwkgc,kcgo->nwgo", patches, kernel).reshape(n, length, features)


def exact_mixture(top: int) -> Callable[..., Any]:
    """Return a mixture of experts on the tape: each token meets its `top` experts."""

    def mixture(x: Any, router: Any, w: Any) -> Any:
        gates = tape.softmax(x @ router)
        chosen = np.argsort(-gates.value, 1)[:, :top]
        keep = (chosen[:, :, None] == np.arange(w.shape[0])).any(1)
        return tape.einsum("me,men->mn", gates * keep, tape.tanh(tape.einsum("mk,ekn->men", x, w)))

    return mixture
