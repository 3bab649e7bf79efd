"""Runs of jobs on a cluster of Dask workers: batches, their placement, messages, and the nodes."""
