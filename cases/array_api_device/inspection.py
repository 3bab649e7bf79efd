"""Devices, capabilities and dtypes in `__array_namespace_info__()`.

Portable code asks the namespace for its devices before it makes an array. The default device of jax
is None: an array made without a device is uncommitted, so it is on some device but follows the
arrays it is combined with. Before 0.6.0 the list lacked None, and the devices of every platform
except the default platform.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax._src import xla_bridge

from conformance.kit import Observed, deviation, probe

from ._helpers import info, label, namespace, ones

NONE_NOT_LISTED = deviation(
    "jax<0.6",
    outcome="ok",
    reason="devices() was jax.devices(), which does not list None",
    issue="jax-ml/jax#27606",
)


@probe(source="jax-ml/jax#27616", devices=3, deviations=[NONE_NOT_LISTED])
def devices_listed(env):
    """All devices of all platforms are listed, and None, which means uncommitted."""
    listed = [label(device) for device in info().devices()]
    return Observed(listed, reference=["None", *(label(device) for device in env.devices)])


@probe(source="jax-ml/jax#27606", devices=3)
def devices_of_each_platform(env):
    """All devices of `jax.devices(platform)` are listed, for each live platform.

    In a CPU-only cell that is the CPU. With an accelerator the CPU must be listed, too, which up to
    0.5.3 it is not.
    """
    listed = set(map(label, info().devices()))
    platforms = sorted({env.devices[0].platform, "cpu"})
    missing = [label(d) for p in platforms for d in jax.devices(p) if label(d) not in listed]
    return Observed({"missing": len(missing)}, reference={"missing": 0})


DEFAULT_BACKEND_ONLY = deviation(
    "jax<0.6",
    outcome="ok",
    reason="devices() was jax.devices(): only the devices of the default backend",
    issue="jax-ml/jax#27606",
)


@probe(source="jax-ml/jax#27606", devices=1, platforms=("cpu",), deviations=[DEFAULT_BACKEND_ONLY])
def devices_of_every_backend(env):
    """The devices of a second backend, here another CPU client, are listed, too.

    A host without an accelerator has one backend, and could not distinguish the default from all.
    """
    del env
    # Before the backends are initialised: after that, none can be added.
    xla_bridge.register_backend_factory("twin", xla_bridge.make_cpu_client, priority=-100)
    jax.config.update("jax_platforms", "cpu,twin")
    backends = xla_bridge.backends()
    clients = {device.client for device in info().devices() if device is not None}
    listed = [name for name, client in backends.items() if client in clients]
    return Observed(sorted(listed), reference=["cpu", "twin"])


DEFAULT_DEVICE_NOT_LISTED = deviation(
    "jax<0.6",
    outcome="ok",
    reason="the default device is None, which was not listed",
    issue="jax-ml/jax#27606",
)


@probe(source="data-apis/array-api#923", devices=2, deviations=[DEFAULT_DEVICE_NOT_LISTED])
def default_device_is_listed(env):
    """The default device is listed in `devices()`, so that a user can look it up there.

    It is None on all releases, but None is listed only from 0.6.0.
    """
    namespace_info = info()
    default = namespace_info.default_device()
    return Observed(
        {"default": label(default), "listed": default in namespace_info.devices()},
        reference={"default": "None", "listed": True},
    )


NAME_OF_THE_CLIENT = deviation(
    "jax<0.10", outcome="ok", reason="the name was that of the runtime's client: TFRT_CPU_0"
)


@probe(source="jax-ml/jax@5be30dd56d77", platforms=("cpu",), deviations=[NAME_OF_THE_CLIENT])
def name_of_a_device(env):
    """`str(device)` is `cpu:0`, as in examples of the standard and in other libraries."""
    return Observed(str(env.devices[0]), reference="cpu:0")


@probe(
    source="jax-ml/jax@c2f2b0ed2877",
    platforms=("cpu",),
    records="no edition is the right one: `jax.numpy` decides which it claims to implement",
)
def edition_of_jax_numpy(env):
    """The edition of the array API standard that `jax.numpy` claims; none up to 0.4.31."""
    del env
    return Observed(getattr(jnp, "__array_api_version__", "none"))


@probe(source="jax-ml/jax#39147", devices=2)
def devices_container(env):
    """The type of `devices()` fits the edition of the standard that the namespace claims.

    Edition 2025.12 asks for a tuple, earlier editions for a list.
    """
    edition = namespace().__array_api_version__
    kind = type(info().devices()).__name__
    return Observed(kind, reference="tuple" if edition >= "2025.12" else "list")


@probe(source="jax-ml/jax#39147")
def edition_claimed(env):
    """An array's `__array_namespace__` accepts the edition that its namespace claims."""
    edition = namespace().__array_api_version__
    accepted = ones().__array_namespace__(api_version=edition)
    return Observed(
        {"edition": edition, "accepted": accepted is namespace()},
        reference={"edition": edition, "accepted": True},
    )


BOOLEAN_INDEXING_CLAIMED = deviation(
    "jax<0.6",
    outcome="ok",
    reason="boolean indexing was claimed, because it works outside transformations",
    issue="jax-ml/jax#27418",
)


@probe(source="jax-ml/jax#27418", deviations=[BOOLEAN_INDEXING_CLAIMED])
def capabilities(env):
    """`capabilities()` claims data-dependent shapes only if they also work in transformations.

    Boolean indexing fails under jit, so it must be False; `max dimensions` was added in 2024.12.
    """
    claimed = dict(info().capabilities())
    known = {key: claimed.get(key) for key in ("boolean indexing", "data-dependent shapes")}
    try:
        jax.jit(lambda x: x[x > 0])(ones())
        works = True
    except IndexError:
        works = False
    return Observed(known, reference={"boolean indexing": works, "data-dependent shapes": False})


KINDS = {
    "bool": "bool",
    "signed integer": "int16 int32 int8",
    "unsigned integer": "uint16 uint32 uint8",
    "real floating": "float32",
    "complex floating": "complex64",
}

KINDS_X64 = {
    "bool": "bool",
    "signed integer": "int16 int32 int64 int8",
    "unsigned integer": "uint16 uint32 uint64 uint8",
    "real floating": "float32 float64",
    "complex floating": "complex128 complex64",
}


@probe(source="jax-ml/jax#20294", params={"x32": {"x64": False}, "x64": {"x64": True}})
def dtypes_by_kind(env, x64):
    """The dtypes of each kind follow the 64-bit option; the standard has no narrow floats."""
    with env.compat.enable_x64(x64):
        observed = {kind: " ".join(sorted(info().dtypes(kind=kind))) for kind in KINDS}
    return Observed(observed, reference=KINDS_X64 if x64 else KINDS)


@probe(source="jax-ml/jax#20294")
def default_dtypes_are_made(env):
    """Creation functions without a dtype use the dtypes in `default_dtypes`."""
    xp, dtypes = namespace(), info().default_dtypes()
    observed = {
        "real floating": str(xp.ones(2).dtype),
        "complex floating": str(xp.asarray(1j).dtype),
        "integral": str(xp.arange(2).dtype),
        "indexing": str(xp.argmax(ones()).dtype),
    }
    return Observed(observed, reference={kind: str(dtype) for kind, dtype in dtypes.items()})
