"""Settings of a script for its whole process."""

from __future__ import annotations

import ast

import pytest

from conformance.triage.new.script_source import collect_imported_names
from conformance.triage.new.settings import ScriptSettings, read_settings


def found(text: str) -> ScriptSettings:
    """Return the settings of a script."""
    tree = ast.parse(text)
    return read_settings(tree, collect_imported_names(ast.walk(tree)), {})


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
def test_settings_become_keywords(text: str, what: dict[str, object]) -> None:
    """Their statements are not a part of the case."""
    settings = found(HEAD + text)
    assert {name: getattr(settings, name) for name in what} == what
    assert len(settings.statements) == 1


@pytest.mark.parametrize(
    ("lines", "flags"),
    [
        (['os.environ["XLA_FLAGS"] = "--a"', 'os.environ["XLA_FLAGS"] = "--b"'], ["--b"]),
        (['os.environ["XLA_FLAGS"] = "--a"', 'os.environ["XLA_FLAGS"] += " --b"'], ["--a", "--b"]),
        (['os.environ.setdefault("XLA_FLAGS", "--a")', 'os.environ.setdefault("XLA_FLAGS", "--b")'],
         ["--a"]),
        (['os.environ["XLA_FLAGS"] = "--a"',
          'os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --b"'], ["--a", "--b"]),
        (['os.environ["XLA_FLAGS"] = "--a"',
          'os.environ["XLA_FLAGS"] = "--b " + os.environ["XLA_FLAGS"]'], ["--b", "--a"]),
    ],
)  # fmt: skip
def test_a_variable_has_the_value_that_the_last_statement_gives_it(
    lines: list[str], flags: list[str]
) -> None:
    """As in a process."""
    settings = found(HEAD + "\n".join(lines))
    assert settings.xla_flags == flags
    assert len(settings.statements) == len(lines)


def test_an_option_of_jax_wins_over_its_variable() -> None:
    """The variable is read when jax is imported, which comes before."""
    text = 'jax.config.update("jax_enable_x64", False)\nos.environ["JAX_ENABLE_X64"] = "1"'
    assert not found(HEAD + text).x64


@pytest.mark.parametrize(
    "text",
    [
        'print(1)\njax.config.update("jax_enable_x64", True)',
        'jax.config.update("jax_enable_x64", flag())',
        'os.environ["XLA_FLAGS"] = make()',
        'os.environ["XLA_FLAGS"] += " --a"',
        'x = jax.numpy.ones(3)\nos.environ["XLA_FLAGS"] = "--a"',
    ],
)
def test_late_or_computed_settings_stay(text: str) -> None:
    """They are a part of the behavior."""
    assert found(HEAD + text).statements == []
