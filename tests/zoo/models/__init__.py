"""The zoo: models written as their authors write them, with `import torch` only. `CASES` of each file lists them."""
