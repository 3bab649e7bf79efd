"""Laws: claims that cases make about all examples that Hypothesis draws.

Hypothesis is not installed in cells, for which its releases lack wheels. `example_server` runs it
in a process of the harness's own environment, which a job starts and exchanges examples with.
"""
