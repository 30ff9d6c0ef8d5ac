"""Not imported: the script runner appends this folder to `sys.path`, so that spawned workers find `torch.py` in it."""
