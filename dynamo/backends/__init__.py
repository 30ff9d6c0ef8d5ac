"""`torch._dynamo.backends`: helpers for programs that define a backend."""
