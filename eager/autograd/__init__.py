"""Reverse-mode differentiation: nodes, recording, the engine, custom functions, grad modes."""
