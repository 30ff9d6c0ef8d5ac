"""`make demo`: a pretrained sentence encoder and a small language model, eager and compiled.

`search` runs the encoder (`minilm`), `training` the language model (`gpt`), both on `text`; `rows` is the table, `counters`
counts the compiler's decisions.
"""
