"""Differential fuzzing: random JAX programs, run on several releases and by other means.

`operations` and `transforms` are the tables that programs are drawn from, `strategies` draws them,
`execution` runs them in workers, `oracles` compares the results, `campaign` puts them together.
"""
