"""From cases and cells to observations: plan, cache, executors, run directory."""
