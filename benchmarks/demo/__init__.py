"""`make demo`: a pretrained sentence encoder and a small language model, eager and compiled."""
