"""Classes in an order, as grades are."""

from crossgraft.tasks.binary import BinaryTask
from crossgraft.tasks.multi_class import MultiClassTask


class OrdinalTask(MultiClassTask):
    """One of several classes whose order has a meaning: a multi-class task, and it says so.

    No loss, metric or score uses the order yet; reports name it.
    """

    in_order = True


class OrdinalBinaryTask(BinaryTask):
    """One of two classes in an order: the question whether it is the higher one."""

    in_order = True
