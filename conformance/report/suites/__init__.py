"""Results of pytest suites, and the conformance of releases to them."""
