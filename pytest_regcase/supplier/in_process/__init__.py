"""Faults for agents that take their supplier as a callable: no process, no socket, the same records and judge.

What a callable cannot show (bytes, sockets, a process that ends) is not applicable here, with the reason.
"""

from pytest_regcase.supplier.in_process.injection import Injection, inject

__all__ = ["Injection", "inject"]
