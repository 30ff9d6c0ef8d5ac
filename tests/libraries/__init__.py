"""Model libraries written for torch, run unchanged: their models against torch's results. `python -m tests.libraries --help`."""
