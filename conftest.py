"""Makes a checkout's cases runnable by pytest without installing the project first."""

from __future__ import annotations

from importlib.metadata import entry_points

# An installed project registers the plugin by its entry point, and pytest refuses it twice.
if not any(point.name == "conformance" for point in entry_points(group="pytest11")):
    pytest_plugins = ["conformance.pytest_plugin"]
