"""How the learning rate falls: one file each.

Other packages add theirs through the entry-point group ``crossgraft.schedules``.
"""

from __future__ import annotations

from crossgraft.registry import Registry
from crossgraft.tune.schedules._schedule import Schedule as Schedule
from crossgraft.tune.schedules._schedule import Steps as Steps
from crossgraft.tune.schedules.constant import Constant as Constant
from crossgraft.tune.schedules.cosine import Cosine as Cosine
from crossgraft.tune.schedules.step import Step as Step

SCHEDULES: Registry[type[Schedule]] = Registry("schedule", group="crossgraft.schedules", plugin_type=type)
"""Every schedule that is installed."""

SCHEDULES.add("cosine", Cosine)
SCHEDULES.add("constant", Constant)
SCHEDULES.add("step", Step)
