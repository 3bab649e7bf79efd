"""Upgrades as text and as the file that other reports read."""
