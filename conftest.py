"""Makes a checkout's cases runnable by pytest without installing the project first."""

from __future__ import annotations

from importlib.metadata import entry_points

if not any(point.name == "conformance" for point in entry_points(group="pytest11")):
    pytest_plugins = ["conformance.pytest_plugin"]
