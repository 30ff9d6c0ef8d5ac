"""The boundary between captured values and real objects.

`wrap` makes a captured value from a real object and guards it (start there), `side_effects` records writes to real objects for
replay, `existing_iterators` handles iterators that were already running, `array_memory` the memory that arrays and tensors share.
"""
