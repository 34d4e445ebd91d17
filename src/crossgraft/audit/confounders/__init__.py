"""Every confounder of MICCAT, the taxonomy of the thesis: one file each, an edit of one image in physical units.

Other packages add confounders through the entry-point group ``crossgraft.confounders``.
"""

from __future__ import annotations

from typing import Any

from crossgraft.audit.confounders._confounder import Confounder as Confounder
from crossgraft.audit.confounders._confounder import EditInfo as EditInfo
from crossgraft.audit.confounders._confounder import Painted as Painted
from crossgraft.audit.confounders._confounder import measured_in as measured_in
from crossgraft.audit.confounders.chest_tube import ChestTube as ChestTube
from crossgraft.audit.confounders.ecg_lead import EcgLead as EcgLead
from crossgraft.audit.confounders.low_pass import LowPass as LowPass
from crossgraft.audit.confounders.pen_mark import PenMark as PenMark
from crossgraft.audit.confounders.ruler import Ruler as Ruler
from crossgraft.audit.confounders.tag import Tag as Tag
from crossgraft.audit.confounders.text_annotation import TextAnnotation as TextAnnotation
from crossgraft.registry import Registry

CONFOUNDERS: Registry[type[Any]] = Registry("confounder", group="crossgraft.confounders", plugin_type=type)
"""Every confounder that is installed: the classes, whose fields are their options."""
for _confounder in (Tag, TextAnnotation, PenMark, Ruler, ChestTube, EcgLead, LowPass):
    CONFOUNDERS.add(_confounder.name, _confounder)
