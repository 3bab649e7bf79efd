"""Facts of a pasted report: releases, versions, environment variables, devices."""

from __future__ import annotations

import pytest

from conformance.triage.programs.report_facts import (
    find_pins,
    find_release,
    find_releases,
    find_variables,
)

PINS = """
flax==0.10.2
numpy: 1.26.4
| optax 0.2.4
einops                    0.8.0
jax==0.5.0
jaxlib: 0.5.0
python: 3.11.7
equinox        0.11.0         /env/lib/python3.11/site-packages
"""

COUNT = "--xla_force_host_platform_device_count"


def test_releases_of_a_report_are_found() -> None:
    """All of them, of jax and of jaxlib."""
    text = "I use jax==0.7.1 on python 3.11.4.\njax:    0.6.2\njaxlib: 0.6.1\nJAX version 0.5.0\n"
    assert find_releases(text) == {"0.7.1", "0.6.2", "0.6.1", "0.5.0"}


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("jax              0.5.3\njaxlib           0.5.1\n", "0.5.3"),
        ("on jax 0.5.3; it was right with jax 0.5.2", ""),
        ("on the newest release", ""),
        (">>> jax.__version__\n'0.4.33'\n", "0.4.33"),
        (">>> print(jax.__version__)\n0.4.33\n", "0.4.33"),
    ],
)
def test_the_release_of_a_report_is_found(text: str, release: str) -> None:
    """If it is the only release of jax, whatever release of jaxlib."""
    assert find_release(text) == release


def test_versions_of_imported_packages_are_pinned() -> None:
    """Except jax, which the search varies."""
    script = "import jax, numpy as np\nfrom flax import nnx\ndef f():\n    import equinox.nn\n"
    assert find_pins(PINS, script) == ("equinox==0.11.0", "flax==0.10.2", "numpy==1.26.4")
    assert find_pins("loss 0.25\nstep 3", "import loss") == ("loss==0.25",)
    assert find_pins(PINS, "import einops") == ("einops==0.8.0",)


@pytest.mark.parametrize(
    ("text", "variables"),
    [
        ("Run it as JAX_ENABLE_X64=1 python a.py", {"JAX_ENABLE_X64": "1"}),
        ("```bash\n$ XLA_FLAGS='--a=1 --b' uv run python3.11 a.py\n```",
         {"XLA_FLAGS": "--a=1 --b"}),
        ("`A=1 python a.py` works, `A=2 python a.py` does not", {}),
        (f"with XLA_FLAGS={COUNT}=4", {"XLA_FLAGS": f"{COUNT}=4"}),
        (f"on a host with `{COUNT}=4`, not `{COUNT}=8`", {}),
        (f"XLA_FLAGS={COUNT}=2 python a.py\ndevice info: cpu-8, 8 local devices",
         {"XLA_FLAGS": f"{COUNT}=2"}),
        ("XLA_FLAGS=--a python a.py\ndevice info: cpu-8, 8 local devices",
         {"XLA_FLAGS": f"--a {COUNT}=8"}),
        ("device info: cpu-1, 1 local devices", {}),
        ("it needs 4096 local devices; x=1; y = 2", {}),
    ],
)  # fmt: skip
def test_variables_of_the_author_are_set(text: str, variables: dict[str, str]) -> None:
    """Those of a command, and the number of devices."""
    assert find_variables(text, "import jax\n", []) == variables


def test_commands_that_differ_are_noted() -> None:
    """Which of them fails is not known."""
    notes: list[str] = []
    assert find_variables("`A=1 python a.py` fails, `A=2 python a.py` does not", "", notes) == {}
    assert notes == ["its commands set different environment variables, of which none is set here"]


@pytest.mark.parametrize(
    "setting",
    [
        f"os.environ['XLA_FLAGS'] = '{COUNT}=4'",
        f"os.environ['XLA_FLAGS'] += f' {COUNT}={{n}}'",
        "jax.config.update('jax_num_cpu_devices', 4)",
    ],
)
def test_a_script_that_sets_its_devices_decides(setting: str) -> None:
    """A comment or a docstring sets nothing."""
    text = "device info: cpu-8, 8 local devices"
    assert find_variables(text, f"{setting}\n", []) == {}
    described = f"# {setting}\n" + f'"""{setting}"""\n'
    assert find_variables(text, described, []) == {"XLA_FLAGS": f"{COUNT}=8"}
