"""`conformance new`: a case from a script as somebody pasted it."""
