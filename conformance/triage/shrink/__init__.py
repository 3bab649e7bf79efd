"""`conformance shrink`: the least of a case that still fails."""
