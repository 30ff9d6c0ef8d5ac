"""What capture reports: `causes` of graph breaks, `errors`, and `break_errors` (the switch that makes breaks errors)."""
