"""What depends on whether images have one class or any number of labels; nobody else asks."""

from typing import TYPE_CHECKING

from crossgraft.faces import lazy_face

if TYPE_CHECKING:
    from crossgraft.tasks._task import DEFAULT_THRESHOLD as DEFAULT_THRESHOLD
    from crossgraft.tasks._task import AnyTask as AnyTask
    from crossgraft.tasks._task import Decisions as Decisions
    from crossgraft.tasks._task import Probabilities as Probabilities
    from crossgraft.tasks._task import Task as Task
    from crossgraft.tasks._task import Thresholds as Thresholds
    from crossgraft.tasks.choosing import TASKS as TASKS
    from crossgraft.tasks.choosing import num_choices as num_choices
    from crossgraft.tasks.choosing import recorded_task as recorded_task
    from crossgraft.tasks.choosing import task_named as task_named
    from crossgraft.tasks.choosing import task_of as task_of
    from crossgraft.tasks.multi_class import BinaryTask as BinaryTask
    from crossgraft.tasks.multi_class import MultiClassTask as MultiClassTask
    from crossgraft.tasks.multi_class import OrdinalBinaryTask as OrdinalBinaryTask
    from crossgraft.tasks.multi_class import OrdinalTask as OrdinalTask
    from crossgraft.tasks.multi_label import MultiLabelTask as MultiLabelTask

lazy_face(__name__)
