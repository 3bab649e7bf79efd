"""Campaigns of fuzzing: run, reported, and a folder for each finding."""
