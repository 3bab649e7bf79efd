"""Devices that a program needs: by its source, and by the error that ends it on one device."""

from __future__ import annotations

import pytest

from conformance.triage.programs.needed_devices import count_named_devices, count_needed_devices
from conformance.triage.programs.outcomes import make_error_info


@pytest.mark.parametrize(
    ("message", "count"),
    [
        ("compiling computation that requires 4 logical devices, but only 1 XLA devices", 4),
        ("Number of devices 1 must be >= the product of mesh_shape (2, 4)", 8),
        ("Number of devices 1 must equal the product of mesh_shape (8,)", 8),
        ("cannot reshape array of size 1 into shape (2,4)", 8),
        ("cannot reshape array of size 1 into shape (2,newaxis)", 4),
        ("cannot reshape array of size 1 into shape (0,)", 0),
        ("cannot reshape array of size 6 into shape (2,4)", 0),
    ],
)
def test_needed_devices_are_counted(message: str, count: int) -> None:
    """By the messages of jax; that of NumPy counts if the program asks for devices."""
    error = make_error_info("ValueError", message)
    assert count_needed_devices(error, "Mesh(np.array(jax.devices()).reshape(2, 4))") == count
    if "reshape" in message:
        assert count_needed_devices(error, "x.reshape(2, 4)") == 0
    assert count_needed_devices(None, "") == 0


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("mesh = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ('x', 'y'))", 4),
        ("x = jax.device_put(x, jax.devices()[1])", 2),
        ("a, b = jax.devices()[0], jax.local_devices()[7]", 8),
        ("d = jax.devices('cpu')[:2]", 2),
        ("assert len(jax.devices()) == 8", 8),
        ("assert jax.device_count() >= 4, 'too few'", 4),
        ("assert x and jax.local_device_count() == 2", 2),
        ("d = jax.devices()[0]", 0),
        ("d = jax.devices()[-1]", 0),
        ("d = jax.devices()[:n]", 0),
        ("d = devices[3]", 0),
        ("assert jax.device_count() == n", 0),
        ("if len(jax.devices()) == 8: pass", 0),
        ("d = jax.devices()[100000]", 0),
        ("jax.config.update('jax_num_cpu_devices', 8); d = jax.devices()[:4]", 0),
        ("this is no Python", 0),
    ],
)
def test_named_devices_are_counted(source: str, count: int) -> None:
    """Of slices, indices and assertions; a program that sets their number decides itself."""
    assert count_named_devices(source) == count
