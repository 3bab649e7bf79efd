"""Platforms: what cells are compiled for or run on, by name: `cpu`, `tpu:v5e:2x2`, `gpu` ..."""
