"""Differential fuzzing: random JAX programs, run on several releases and by other means.

`operations` and `transforms` are the tables that programs are drawn from, `strategies` draws them,
`batches` runs them in workers, `evaluation` compares the results, `findings` shrinks and dates what
differs, and `campaign` puts them together.
"""
