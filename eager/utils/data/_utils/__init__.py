"""Parts of DataLoader: collating, fetching, worker processes and the transfer between processes."""
from __future__ import annotations
