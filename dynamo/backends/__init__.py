"""`torch._dynamo.backends`: what programs build a backend of their own from."""
