"""Facts of intermediate representations; pure text in, plain data out."""
