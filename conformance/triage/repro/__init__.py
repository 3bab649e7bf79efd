"""`conformance repro`: a case on a cell as one standalone file."""
