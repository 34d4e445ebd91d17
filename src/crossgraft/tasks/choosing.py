"""The task of arrays, of a name, of a record: the only places that look at the form of targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.tasks._task import Task
from crossgraft.tasks.multi_class import BinaryTask, MultiClassTask, OrdinalBinaryTask, OrdinalTask
from crossgraft.tasks.multi_label import MultiLabelTask

TASKS: Mapping[str, Task] = {task.name: task for task in (MultiClassTask(), BinaryTask(), MultiLabelTask())}
"""Name → task, as losses declare them."""


def task_of(targets: np.ndarray, num_classes: int | None = None, *, ordinal: bool = False) -> Task:
    """The task that targets are of.

    Args:
        targets: (n,) class of each image, or (n, L) of 0 and 1.
        num_classes: Number of classes; None where it makes no difference whether they are two.
        ordinal: Whether the order of the classes has a meaning.

    Raises:
        UsageError: Labels are said to be in an order.

    >>> task_of(np.array([0, 1, 1]), 2), task_of(np.array([0, 2, 1]), 3, ordinal=True), task_of(np.array([[0, 1]]))
    (BinaryTask(), OrdinalTask(), MultiLabelTask())
    """
    if targets.ndim == 2:
        if ordinal:
            raise UsageError("--ordinal is for classes in an order, one per image; these images may have several labels.")
        return MultiLabelTask()
    return _of_classes(num_classes, ordinal)


def task_named(task: str) -> Task:
    """The task of this name; a task as it is.

    Raises:
        UnknownNameError: There is no such task.

    >>> task_named("binary").usual_loss
    'cross_entropy'
    """
    if isinstance(task, Task):
        return task
    if task not in TASKS:
        raise UnknownNameError("task", task, TASKS)
    return TASKS[task]


class Recorded(Protocol):
    """A record of data or of a model: the recorded name does not say whether classes are two."""

    @property
    def task(self) -> str:
        """The recorded name."""
        ...

    @property
    def class_names(self) -> Sequence[str]:
        """Classes or labels."""
        ...


def recorded_task(record: Recorded) -> Task:
    """The task of the data or of the model that a record describes."""
    if record.task == MultiLabelTask.recorded:
        return MultiLabelTask()
    return _of_classes(len(record.class_names), bool(getattr(record, "ordinal", False)))


def num_choices(record: Recorded) -> int:
    """Among how many answers guessing chooses: classes, or yes and no of each label."""
    return len(record.class_names) if recorded_task(record).partitions else 2


def _of_classes(num_classes: int | None, ordinal: bool) -> Task:
    if num_classes == 2:
        return OrdinalBinaryTask() if ordinal else BinaryTask()
    return OrdinalTask() if ordinal else MultiClassTask()
