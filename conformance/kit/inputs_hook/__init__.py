"""What makes Python note the files that a process reads: see `sitecustomize`."""
