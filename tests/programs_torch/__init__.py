"""Complete training programs as users of torch write them; `python -m eager.as_torch tests/programs_torch/NAME.py [--compile]` runs one."""
