"""`conformance blame`: which of the packages that two environments differ in is at fault."""
