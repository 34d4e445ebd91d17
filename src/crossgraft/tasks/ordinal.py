"""Classes in an order, as grades are."""

from crossgraft.tasks.binary import Binary
from crossgraft.tasks.multi_class import MultiClass


class Ordinal(MultiClass):
    """One of several classes whose order has a meaning: a multi-class task, and it says so.

    No loss, metric or score uses the order yet; reports name it.
    """

    in_order = True


class OrdinalBinary(Binary):
    """One of two classes in an order: the question whether it is the higher one."""

    in_order = True
