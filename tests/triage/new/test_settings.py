"""What a script sets for its whole process."""

from __future__ import annotations

import ast

import pytest

from conformance.triage.new.script_source import collect_imported_names
from conformance.triage.new.settings import ScriptSettings, read_settings


def found(text: str) -> ScriptSettings:
    """Return what a script sets."""
    tree = ast.parse(text)
    return read_settings(tree, collect_imported_names(tree), {})


HEAD = "import os\nimport jax\n"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"', {"devices": 4}),
        ('os.environ["XLA_FLAGS"] = "--a=1 --b"', {"xla_flags": ["--a=1", "--b"]}),
        ('N = 2\nos.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={N}"',
         {"devices": 2}),
        ('os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --a"',
         {"xla_flags": ["--a"]}),
        ('os.environ.setdefault("XLA_FLAGS", "--a")', {"xla_flags": ["--a"]}),
        ('os.environ.update({"XLA_FLAGS": "--a"})', {"xla_flags": ["--a"]}),
        ('os.environ["JAX_ENABLE_X64"] = "1"', {"x64": True}),
        ('os.environ["JAX_TRACEBACK_FILTERING"] = "off"',
         {"config": {"jax_traceback_filtering": False}}),
        ('os.environ["JAX_PLATFORMS"] = "cpu"', {"dropped": ["jax_platforms"]}),
        ('os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"', {"dropped": ["TF_CPP_MIN_LOG_LEVEL"]}),
        ('jax.config.update("jax_enable_x64", True)', {"x64": True}),
        ('jax.config.update("jax_num_cpu_devices", 8)', {"devices": 8}),
        ('jax.config.update("jax_threefry_partitionable", False)',
         {"config": {"jax_threefry_partitionable": False}}),
        ("jax.config.jax_debug_nans = True", {"config": {"jax_debug_nans": True}}),
    ],
)  # fmt: skip
def test_settings_are_read(text: str, what: dict[str, object]) -> None:
    """They become keywords of the case."""
    settings = found(HEAD + text)
    assert {name: getattr(settings, name) for name in what} == what
    assert len(settings.statements) == 1


@pytest.mark.parametrize(
    "text",
    [
        'print(1)\njax.config.update("jax_enable_x64", True)',
        'jax.config.update("jax_enable_x64", flag())',
        'os.environ["XLA_FLAGS"] = make()',
        'x = jax.numpy.ones(3)\nos.environ["XLA_FLAGS"] = "--a"',
    ],
)
def test_what_is_set_late_or_computed_stays(text: str) -> None:
    """It is part of what the script does."""
    assert found(HEAD + text).statements == []
