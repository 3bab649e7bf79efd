"""Addresses by which old releases of jax call Python back: the same module in every process."""

from __future__ import annotations

import pytest

from tests.ir.texts import hlo, structure


def calling(target: str, address: str, operand: str = "") -> str:
    """Return a module that calls a function at an address."""
    return hlo(
        f"%a = s64[] constant({operand or address})",
        f'%r = f32[4] custom-call(%a, %x), custom_call_target="{target}", '
        f'backend_config="{address}"',
    )


@pytest.mark.parametrize("target", ["xla_python_cpu_callback", "xla_python_gpu_callback"])
def test_a_callback_is_the_same_wherever_its_function_lies(target: str) -> None:
    """Both places of the address are, and nothing else of the call."""
    one = structure(calling(target, "93918520036768"))
    assert structure(calling(target, "94812065876640")) == one
    assert structure(calling(target, "93918520036768", "3")) != one


def test_numbers_of_other_calls_mean_something() -> None:
    """A configuration that is a number may be one."""
    assert structure(calling("my_kernel", "16")) != structure(calling("my_kernel", "32"))
