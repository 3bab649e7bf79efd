"""`conformance new`: makes a case of a pasted script."""
