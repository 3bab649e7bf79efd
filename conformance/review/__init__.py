"""Reviewing what a run showed: pending changes, grouped, decided on, and written or exported."""
