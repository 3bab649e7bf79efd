"""Reviews of a run: pending changes in groups, decisions on them, written or exported."""
