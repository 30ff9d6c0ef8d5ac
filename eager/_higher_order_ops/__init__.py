"""Functions that take functions of tensors, under the private package from which libraries import them."""
from eager._higher_order_ops.associative_scan import associative_scan
from eager._higher_order_ops.control_flow import cond, while_loop

__all__ = ["associative_scan", "cond", "while_loop"]
