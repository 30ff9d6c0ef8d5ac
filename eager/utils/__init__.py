"""Utilities for training: data loading, checkpointing, trees of tensors, logging of runs.

Each submodule is imported on first use.
"""
