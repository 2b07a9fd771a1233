"""Kernels of transfer."""
