"""Kernels of the samples."""
