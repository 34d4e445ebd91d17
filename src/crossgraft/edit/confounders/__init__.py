"""Every confounder of MICCAT, the taxonomy of the thesis: one file each, an edit of one image in physical units.

Other packages add confounders through the entry-point group ``crossgraft.confounders``.
"""

from __future__ import annotations

from typing import Any

from crossgraft.edit._image_edit import Confounder as Confounder
from crossgraft.edit._image_edit import EditInfo as EditInfo
from crossgraft.edit._image_edit import Painted as Painted
from crossgraft.edit._image_edit import measured_in as measured_in

# One line exports a confounder and registers it; lists have the order of these lines.
# isort: off
from crossgraft.edit.confounders.tag import Tag as Tag
from crossgraft.edit.confounders.text_annotation import TextAnnotation as TextAnnotation
from crossgraft.edit.confounders.pen_mark import PenMark as PenMark
from crossgraft.edit.confounders.ruler import Ruler as Ruler
from crossgraft.edit.confounders.chest_tube import ChestTube as ChestTube
from crossgraft.edit.confounders.ecg_lead import EcgLead as EcgLead
from crossgraft.edit.confounders.low_pass import LowPass as LowPass
from crossgraft.edit.confounders.poisson_image import PoissonImage as PoissonImage
from crossgraft.edit.confounders.poisson_projection import PoissonProjection as PoissonProjection
from crossgraft.edit.confounders.nlm_denoising import NlmDenoising as NlmDenoising
from crossgraft.edit.confounders.motion_blur import MotionBlur as MotionBlur
from crossgraft.edit.confounders.mr_motion import MrMotion as MrMotion
from crossgraft.edit.confounders.intensity_shift import IntensityShift as IntensityShift
from crossgraft.edit.confounders.gamma import Gamma as Gamma
from crossgraft.edit.confounders.jpeg import Jpeg as Jpeg
from crossgraft.edit.confounders.bias_field import BiasField as BiasField
from crossgraft.edit.confounders.gibbs import Gibbs as Gibbs
from crossgraft.edit.confounders.resample import Resample as Resample
from crossgraft.edit.confounders.collimation import Collimation as Collimation

# isort: on
from crossgraft.registry import Registry

CONFOUNDERS: Registry[type[Any]] = Registry("confounder", group="crossgraft.confounders", plugin_type=type)
"""Every confounder that is installed: the classes, whose fields are their options."""
for _kind in [exported for exported in globals().values() if isinstance(exported, type) and issubclass(exported, Confounder)]:
    if _kind is not Confounder:
        CONFOUNDERS.add(_kind.name, _kind)
