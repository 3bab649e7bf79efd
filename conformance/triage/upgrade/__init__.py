"""Upgrades: what breaks and what changes from one release to another, and in which one."""
