"""What `__array_namespace_info__()` says of devices, capabilities and dtypes.

Portable code asks the namespace which devices there are before it makes an array. jax answers
None for the default device: an array made without one is uncommitted, it lives somewhere but
follows what it meets. Until 0.6.0 None was missing from the list, and so were the devices of every
platform but the default one.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax._src import xla_bridge

from conformance.kit import Observed, deviation, probe

from ._helpers import info, label, namespace, ones


@probe(
    source="jax-ml/jax#27616",
    devices=3,
    deviations=[
        deviation(
            "jax<0.6",
            outcome="ok",
            reason="devices() is jax.devices(): None is not listed",
            issue="jax-ml/jax#27606",
        )
    ],
)
def devices_listed(env):
    """Every device of every platform is listed, and None, which stands for uncommitted."""
    listed = [label(device) for device in info().devices()]
    return Observed(listed, reference=["None", *(label(device) for device in env.devices)])


@probe(source="jax-ml/jax#27606", devices=3)
def devices_of_each_platform(env):
    """What `jax.devices(platform)` gives for each live platform is in the list.

    On a CPU-only cell that is the CPU; where there is an accelerator the CPU must be there too,
    which up to 0.5.3 it is not.
    """
    listed = set(map(label, info().devices()))
    platforms = sorted({env.devices[0].platform, "cpu"})
    missing = [label(d) for p in platforms for d in jax.devices(p) if label(d) not in listed]
    return Observed({"missing": len(missing)}, reference={"missing": 0})


@probe(
    source="jax-ml/jax#27606",
    devices=1,
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.6",
            outcome="ok",
            reason="devices() is jax.devices(): only those of the default backend",
            issue="jax-ml/jax#27606",
        )
    ],
)
def devices_of_every_backend(env):
    """Devices of a second backend, here another CPU client, are in the list beside the default's.

    A host without an accelerator has one backend, and could not tell the default from all.
    """
    del env
    # The backends must not be initialised before: then it is too late to add one.
    xla_bridge.register_backend_factory("twin", xla_bridge.make_cpu_client, priority=-100)
    jax.config.update("jax_platforms", "cpu,twin")
    backends = xla_bridge.backends()
    clients = {device.client for device in info().devices() if device is not None}
    listed = [name for name, client in backends.items() if client in clients]
    return Observed(sorted(listed), reference=["cpu", "twin"])


@probe(
    source="data-apis/array-api#923",
    devices=2,
    deviations=[
        deviation(
            "jax<0.6",
            outcome="ok",
            reason="the default is None, which is not listed",
            issue="jax-ml/jax#27606",
        )
    ],
)
def default_device_is_listed(env):
    """The default device is one of `devices()`, whatever it is: a user may look it up there.

    jax answers None on all releases, but lists it only from 0.6.0.
    """
    told = info()
    default = told.default_device()
    return Observed(
        {"default": label(default), "listed": default in told.devices()},
        reference={"default": "None", "listed": True},
    )


@probe(
    source="jax-ml/jax@5be30dd56d77",
    platforms=("cpu",),
    deviations=[
        deviation("jax<0.10", outcome="ok", reason="the name of the runtime's client: TFRT_CPU_0")
    ],
)
def name_of_a_device(env):
    """`str(device)` is `cpu:0`, as the standard's examples and other libraries name devices."""
    return Observed(str(env.devices[0]), reference="cpu:0")


@probe(
    source="jax-ml/jax@c2f2b0ed2877",
    platforms=("cpu",),
    records="no edition is the right one; it says what `jax.numpy` claims to implement",
)
def edition_of_jax_numpy(env):
    """The edition of the array API standard that `jax.numpy` claims, and none up to 0.4.31."""
    del env
    return Observed(getattr(jnp, "__array_api_version__", "none"))


@probe(source="jax-ml/jax#39147", devices=2)
def devices_container(env):
    """2025.12 of the standard asks for a tuple, earlier editions for a list.

    The answer must fit the edition the namespace claims.
    """
    edition = namespace().__array_api_version__
    kind = type(info().devices()).__name__
    return Observed(kind, reference="tuple" if edition >= "2025.12" else "list")


@probe(source="jax-ml/jax#39147")
def edition_claimed(env):
    """The edition an array's namespace claims is the one its `__array_namespace__` accepts."""
    edition = namespace().__array_api_version__
    accepted = ones().__array_namespace__(api_version=edition)
    return Observed(
        {"edition": edition, "accepted": accepted is namespace()},
        reference={"edition": edition, "accepted": True},
    )


@probe(
    source="jax-ml/jax#27418",
    deviations=[
        deviation(
            "jax<0.6",
            outcome="ok",
            reason="boolean indexing is claimed, as it works outside transformations",
            issue="jax-ml/jax#27418",
        )
    ],
)
def capabilities(env):
    """Which operations with data-dependent shapes work, inside transformations as outside.

    Boolean indexing fails under jit, so it must be False; `max dimensions` came with 2024.12.
    """
    told = dict(info().capabilities())
    known = {key: told.get(key) for key in ("boolean indexing", "data-dependent shapes")}
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


@probe(
    source="jax-ml/jax#20294",
    params={"x32": {"x64": False}, "x64": {"x64": True}},
)
def dtypes_by_kind(env, x64):
    """The dtypes of each kind follow the 64-bit switch; narrow floats are not in the standard."""
    with env.compat.enable_x64(x64):
        seen = {kind: " ".join(sorted(info().dtypes(kind=kind))) for kind in KINDS}
    return Observed(seen, reference=KINDS_X64 if x64 else KINDS)


@probe(source="jax-ml/jax#20294")
def default_dtypes_are_made(env):
    """What creation functions make without a dtype is what `default_dtypes` says."""
    xp, told = namespace(), info().default_dtypes()
    made = {
        "real floating": str(xp.ones(2).dtype),
        "complex floating": str(xp.asarray(1j).dtype),
        "integral": str(xp.arange(2).dtype),
        "indexing": str(xp.argmax(ones()).dtype),
    }
    return Observed(made, reference={kind: str(dtype) for kind, dtype in told.items()})
