"""`conformance passes`: the HLO passes, flags and options behind the behaviour of a program."""
