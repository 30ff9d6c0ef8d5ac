"""Measurements of framejit against eager execution, against torch where it is installed, and the demo."""
