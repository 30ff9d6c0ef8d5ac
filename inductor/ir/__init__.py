"""What a graph computes, as definitions over index expressions: `definitions` (start there), `sizes`, `substitute`, `inline`."""
