"""Kernels of taggers."""
