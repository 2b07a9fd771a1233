"""Kernels of the phrase table."""
