"""What training minimises in the place of the mean loss: one file each, named by the objective's published name.

Other packages add theirs through the entry-point group ``crossgraft.objectives``.
"""

from __future__ import annotations

from typing import Any

from crossgraft.registry import Registry
from crossgraft.tune.objectives.erm import ERM as ERM
from crossgraft.tune.objectives.group_dro import GroupDRO as GroupDRO
from crossgraft.tune.objectives.irm import IRM as IRM
from crossgraft.tune.objectives.vrex import VREx as VREx
from crossgraft.tune.protocols import Objective as Objective
from crossgraft.tune.protocols import ObjectiveContext as ObjectiveContext

OBJECTIVES: Registry[type[Any]] = Registry("objective", group="crossgraft.objectives", plugin_type=type)
"""Every objective that is installed, the plain mean first: the classes, whose fields are their options."""
for _objective in (ERM, IRM, VREx, GroupDRO):
    OBJECTIVES.add(_objective.name, _objective)
