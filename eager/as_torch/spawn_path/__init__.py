"""Not imported: a folder that the script runner appends to `sys.path`, so that spawned workers find `torch.py` in it."""
