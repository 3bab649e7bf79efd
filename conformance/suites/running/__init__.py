"""Collecting a suite and running its tests: sessions, workers, and what becomes of each test."""
