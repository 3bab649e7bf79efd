"""Upgrades: breakages and changes between two releases, and the release of each."""
