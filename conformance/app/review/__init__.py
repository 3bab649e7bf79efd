"""The review of a run: what is unexpected, decided on one by one."""
