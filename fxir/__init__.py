"""The graph layer: nodes, passes, joint forward+backward graphs and an integer-expression language."""
