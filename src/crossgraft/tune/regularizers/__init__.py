"""What is added to the loss: one file each, named by the regulariser's published name.

Other packages add regularisers through the entry-point group ``crossgraft.regularizers``.
"""

from __future__ import annotations

from typing import Any

from crossgraft.registry import Registry
from crossgraft.tune.protocols import ForwardStart as ForwardStart
from crossgraft.tune.protocols import Regularizer as Regularizer
from crossgraft.tune.protocols import StepContext as StepContext
from crossgraft.tune.protocols import StepUpdate as StepUpdate
from crossgraft.tune.protocols import TrainingSet as TrainingSet
from crossgraft.tune.regularizers.bss import BSS as BSS
from crossgraft.tune.regularizers.delta import DELTA as DELTA
from crossgraft.tune.regularizers.hcs import HCS as HCS
from crossgraft.tune.regularizers.l2_sp import L2SP as L2SP
from crossgraft.tune.regularizers.repsim import RepSim as RepSim
from crossgraft.tune.regularizers.rho_sim import SelfIdentityMapping as SelfIdentityMapping

REGULARIZERS: Registry[type[Any]] = Registry("regularizer", group="crossgraft.regularizers", plugin_type=type)
"""Every regulariser that is installed: the classes, whose fields are their options."""
for _regularizer in (BSS, DELTA, HCS, L2SP, RepSim, SelfIdentityMapping):
    REGULARIZERS.add(_regularizer.name, _regularizer)
