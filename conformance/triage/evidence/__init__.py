"""Evidence on a root cause: the release, the culprits and a reproduction."""
