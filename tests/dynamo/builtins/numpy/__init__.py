"""numpy under capture: samples of every row of the table."""
