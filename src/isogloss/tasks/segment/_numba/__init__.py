"""Kernels of segmenters."""
