"""What DataLoader is made of: collating, fetching, worker processes and the way between them."""
from __future__ import annotations
