"""Every confounder of MICCAT, the taxonomy of the thesis: one file each, an edit of one image in physical units.

Other packages add confounders through the entry-point group ``crossgraft.confounders``.
"""

from __future__ import annotations

from typing import Any

from crossgraft.audit.confounders._confounder import Confounder as Confounder
from crossgraft.audit.confounders._confounder import EditInfo as EditInfo
from crossgraft.audit.confounders._confounder import Painted as Painted
from crossgraft.audit.confounders._confounder import measured_in as measured_in
from crossgraft.audit.confounders.bias_field import BiasField as BiasField
from crossgraft.audit.confounders.chest_tube import ChestTube as ChestTube
from crossgraft.audit.confounders.collimation import Collimation as Collimation
from crossgraft.audit.confounders.ecg_lead import EcgLead as EcgLead
from crossgraft.audit.confounders.gamma import Gamma as Gamma
from crossgraft.audit.confounders.gibbs import Gibbs as Gibbs
from crossgraft.audit.confounders.intensity_shift import IntensityShift as IntensityShift
from crossgraft.audit.confounders.jpeg import Jpeg as Jpeg
from crossgraft.audit.confounders.low_pass import LowPass as LowPass
from crossgraft.audit.confounders.motion_blur import MotionBlur as MotionBlur
from crossgraft.audit.confounders.mr_motion import MrMotion as MrMotion
from crossgraft.audit.confounders.nlm_denoising import NlmDenoising as NlmDenoising
from crossgraft.audit.confounders.pen_mark import PenMark as PenMark
from crossgraft.audit.confounders.poisson_image import PoissonImage as PoissonImage
from crossgraft.audit.confounders.poisson_projection import PoissonProjection as PoissonProjection
from crossgraft.audit.confounders.resample import Resample as Resample
from crossgraft.audit.confounders.ruler import Ruler as Ruler
from crossgraft.audit.confounders.tag import Tag as Tag
from crossgraft.audit.confounders.text_annotation import TextAnnotation as TextAnnotation
from crossgraft.registry import Registry

CONFOUNDERS: Registry[type[Any]] = Registry("confounder", group="crossgraft.confounders", plugin_type=type)
"""Every confounder that is installed: the classes, whose fields are their options."""
_EXTERNAL = (Tag, TextAnnotation, PenMark, Ruler, ChestTube, EcgLead)
_NOISE = (LowPass, PoissonImage, PoissonProjection, NlmDenoising)
_SCANNER = (MotionBlur, MrMotion, IntensityShift, Gamma, Jpeg, BiasField, Gibbs, Resample, Collimation)
for _confounder in (*_EXTERNAL, *_NOISE, *_SCANNER):
    CONFOUNDERS.add(_confounder.name, _confounder)
