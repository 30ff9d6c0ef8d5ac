"""Programs a capture must get right, by family."""
