"""Kernels of the joint model."""
