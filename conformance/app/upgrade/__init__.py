"""Upgrades: both ends compared, and the packages behind each change."""
