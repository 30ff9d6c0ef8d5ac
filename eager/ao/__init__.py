"""torch.ao: of quantisation, only the places that a model marks for it."""
