"""What all tests share."""

from __future__ import annotations

from hypothesis import settings

# A loaded machine is no failure of the law under test.
settings.register_profile("house", deadline=None)
settings.load_profile("house")
