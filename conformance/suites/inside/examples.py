"""Settings of Hypothesis that override those of a suite and of its tests."""

from __future__ import annotations

import contextlib
import random
import sys
from typing import Any

PROFILE = "conformance"
_SETTINGS = "_hypothesis_internal_use_settings"
"""Attribute of a test with its settings: Hypothesis has no public name for them."""


class ExampleSettings:
    """Settings of Hypothesis for every test.

    Without a seed, the examples depend only on the test. No example database is kept: a run would
    then test other examples than the run before.

    Args:
        number: Examples to try of each test, None for as many as the suite sets.
        seed: Seed of the examples, None for one that depends on the source of each test.
        shrink: Whether a failing example is made smaller.
        seed_random: Whether `random` is seeded with the name of each test.
    """

    def __init__(
        self, *, number: int | None, seed: int | None, shrink: bool, seed_random: bool = False
    ) -> None:
        self._number, self._seed, self._shrink = number, seed, shrink
        self._seed_random = seed_random
        self._done: set[int] = set()

    def apply(self, items: list[Any]) -> None:
        """Apply the settings to collected tests, and to those that are made later.

        Args:
            items: The tests. Nothing is done unless one of them has imported Hypothesis.
        """
        if "hypothesis" not in sys.modules:
            return
        import hypothesis.core  # only tests import it
        from hypothesis import settings  # only tests import it

        vars(hypothesis.core)["global_force_seed"] = self._seed  # as --hypothesis-seed does
        _ignore_source_constants()
        settings.register_profile(PROFILE, self._override(settings()))
        settings.load_profile(PROFILE)
        for item in items:
            self._apply(getattr(item, "obj", None), settings)

    def seed_test(self, test: str) -> None:
        """Seed `random`, which `strategy.example()` draws from without Hypothesis' own seed.

        Args:
            test: Name of the test.
        """
        if self._seed_random:
            random.seed(f"{self._seed} {test}")

    def _override(self, before: Any) -> Any:
        kind = type(before)
        phases = [phase for phase in before.phases if self._shrink or phase.name != "shrink"]
        number = before.max_examples if self._number is None else self._number
        # Hypothesis ignores the seed of a derandomised test.
        return kind(
            before, database=None, derandomize=self._seed is None, phases=phases,
            max_examples=number,
        )  # fmt: skip

    def _apply(self, test: Any, kind: type) -> None:
        """Apply the settings to a function, to those that it wraps, and to a state machine."""
        owner = getattr(test, "__self__", None)
        is_machine = isinstance(getattr(owner, "settings", None), kind)
        machine: Any = type(owner) if is_machine else None
        # Parametrized tests share their function: it must be overridden only once.
        if machine is not None and id(machine) not in self._done:
            self._done.add(id(machine))
            machine.settings = self._override(machine.settings)
        function = getattr(test, "__func__", test)
        while function is not None and id(function) not in self._done:
            self._done.add(id(function))
            before = getattr(function, _SETTINGS, None)
            if isinstance(before, kind):
                setattr(function, _SETTINGS, self._override(before))
            function = getattr(function, "__wrapped__", None)


def _ignore_source_constants() -> None:
    """Keep Hypothesis from trying constants of the source of modules that are loaded.

    They depend on the other tests of the process, and a test must draw the same values alone.
    """
    with contextlib.suppress(ImportError):  # older releases do not try them
        from hypothesis.internal.conjecture import providers  # only tests import it

        vars(providers)["is_local_module_file"] = lambda _: False
