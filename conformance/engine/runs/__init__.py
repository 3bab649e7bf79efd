"""Runs on the disk and over time: their directories, root causes, transitions, histories."""
