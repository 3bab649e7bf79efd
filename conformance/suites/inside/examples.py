"""How Hypothesis looks for examples, whatever the suite itself says."""

from __future__ import annotations

import contextlib
import random
import sys
from typing import Any

PROFILE = "conformance"
_USED = "_hypothesis_internal_use_settings"
"""Where Hypothesis keeps the settings of a test: there is no public place, and this one is old."""


class ExampleSettings:
    """Settings of Hypothesis that count for every test.

    Without a seed what is tried depends on the test alone. Nothing is kept from one run to the
    next, in which the same test would then be held against other examples.

    Args:
        number: How many examples are tried of a test, None for as many as the suite says.
        seed: What Hypothesis begins with, None for what each test's own source gives.
        shrink: Whether the example that fails is made smaller.
        seed_random: Whether `random` begins each test with its name.
    """

    def __init__(
        self, *, number: int | None, seed: int | None, shrink: bool, seed_random: bool = False
    ) -> None:
        self._number, self._seed, self._shrink = number, seed, shrink
        self._seed_random = seed_random
        self._done: set[int] = set()

    def apply(self, items: list[Any]) -> None:
        """Apply them to tests that were collected, and to what these may yet make.

        Args:
            items: The tests; where nothing has imported Hypothesis, none is its.
        """
        if "hypothesis" not in sys.modules:
            return
        import hypothesis.core  # noqa: PLC0415 - where it is there
        from hypothesis import settings  # noqa: PLC0415

        vars(hypothesis.core)["global_force_seed"] = self._seed  # as --hypothesis-seed does
        _forget_loaded_modules()
        settings.register_profile(PROFILE, self._of(settings()))
        settings.load_profile(PROFILE)
        for item in items:
            self._apply(getattr(item, "obj", None), settings)

    def begin(self, test: str) -> None:
        """Settle what a test draws past Hypothesis: `strategy.example()` does, by `random`.

        Args:
            test: Its name.
        """
        if self._seed_random:
            random.seed(f"{self._seed} {test}")

    def _of(self, before: Any) -> Any:
        """Return settings as they were, but for what is wanted."""
        kind = type(before)
        phases = [one for one in before.phases if self._shrink or one.name != "shrink"]
        number = before.max_examples if self._number is None else self._number
        # A seed counts only where nothing is derandomised.
        return kind(
            before, database=None, derandomize=self._seed is None, phases=phases,
            max_examples=number,
        )  # fmt: skip

    def _apply(self, test: Any, kind: type) -> None:
        """Apply them to a function, to what it wraps, and to the class of a state machine."""
        owner = getattr(test, "__self__", None)
        is_machine = isinstance(getattr(owner, "settings", None), kind)
        machine: Any = type(owner) if is_machine else None
        if machine is not None and id(machine) not in self._done:
            self._done.add(id(machine))
            machine.settings = self._of(machine.settings)
        function = getattr(test, "__func__", test)
        while function is not None and id(function) not in self._done:
            self._done.add(id(function))
            before = getattr(function, _USED, None)
            if isinstance(before, kind):
                setattr(function, _USED, self._of(before))
            function = getattr(function, "__wrapped__", None)


def _forget_loaded_modules() -> None:
    """Keep Hypothesis from trying numbers that stand in the source of modules loaded so far.

    Which those are depends on what else the process runs, and a test is to draw the same alone.
    """
    with contextlib.suppress(ImportError):
        from hypothesis.internal.conjecture import providers  # noqa: PLC0415

        vars(providers)["is_local_module_file"] = lambda _: False
