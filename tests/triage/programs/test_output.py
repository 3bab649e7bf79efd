"""The output of a program without the facts of its environment."""

from __future__ import annotations

import pytest

from conformance.triage.programs.output import normalize_output

VERSIONS = {"jax": "0.12.0.1", "jaxlib": "0.12.0.1", "numpy": "2.5.4", "absl-py": "2.3"}


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("0.12.0.1", "<version>"),
        ("jax 0.12.0.1, numpy-2.5.4.", "jax <version>, numpy-<version>."),
        ("absl-py==2.3 gives 2.3", "absl-py==<version> gives 2.3"),
        ("(0, 12, 0) (0, 12, 0, 1)", "<version> <version>"),
        ("Python 3.12.1", "Python <version>"),
        ("3.12.1 (main, May  9 2026, 07:36:11) [GCC 12.2.0]", "<python>"),
        ("/home/me/env/lib/python3.12/site-packages/jax/a.py", "<packages>/jax/a.py"),
        (
            '  File "/e/lib/site-packages/jax/a.py", line 7, in f',
            '  File "<packages>/jax/a.py", in f',
        ),
        ("[CpuDevice(id=0)] TFRT_CPU_0 cpu:0", "[<cpu 0>] <cpu 0> <cpu 0>"),
        ("<object object at 0x7f12ab34cd50>", "<object object at <address>>"),
        ("139912345678912", "<address>"),
        ("2026-05-09 07:36:11.123", "<date>"),
        ("12.5 ms, 3 seconds", "<time>, <time>"),
        ("took: 0.1234", "took: <time>"),
        ("/tmp/tmpab12_9xy/file", "<folder>/file"),
    ],
)
def test_a_fact_of_an_environment(text: str, normal: str) -> None:
    """It stands for whatever another environment has."""
    assert normalize_output(text, VERSIONS) == normal


@pytest.mark.parametrize(
    "text",
    [
        "2.3", "[1.5 2.5]", "float32[3]", "step 3: loss 0.25", "0x1f", "shape=(0, 12)",
        "1234567890", "10.12.0.1.5", "time step 3", "<class 'jax.Array'>", "P('x', 3)",
    ],
)  # fmt: skip
def test_what_a_program_computes(text: str) -> None:
    """It stays as it is."""
    assert normalize_output(text, VERSIONS) == text
