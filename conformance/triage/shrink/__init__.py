"""`conformance shrink`: cuts a case or a script down to its failure."""
