"""Reports of a capture: `causes` of graph breaks, `errors` that the user sees, `counters` of compilations, and `break_errors`, the
switch that makes breaks errors.
"""
