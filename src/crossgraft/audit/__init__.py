"""Does a model lean on a shortcut? Confounders under control, frequencies, and what they do to results."""

from typing import TYPE_CHECKING

from crossgraft.faces import lazy_face

if TYPE_CHECKING:
    from crossgraft.audit.detectability import Detectability as Detectability
    from crossgraft.audit.detectability import detectability as detectability
    from crossgraft.audit.frequency import FrequencyAudit as FrequencyAudit
    from crossgraft.audit.frequency import frequency_audit as frequency_audit
    from crossgraft.audit.group_metrics import GroupMetrics as GroupMetrics
    from crossgraft.audit.group_metrics import group_metrics as group_metrics
    from crossgraft.audit.learning_priority import LearningPriority as LearningPriority
    from crossgraft.audit.learning_priority import learning_priority as learning_priority
    from crossgraft.audit.reliance import Curves as Curves
    from crossgraft.audit.reliance import ExactTestScores as ExactTestScores
    from crossgraft.audit.reliance import early_gap as early_gap
    from crossgraft.audit.reliance import flip_effect as flip_effect
    from crossgraft.audit.reliance import flip_share as flip_share
    from crossgraft.audit.reliance import ood_drop_area as ood_drop_area
    from crossgraft.audit.reliance import pure_shortcut as pure_shortcut
    from crossgraft.audit.reliance import shortcut_reliance_index as shortcut_reliance_index
    from crossgraft.audit.spectra import BandAccuracy as BandAccuracy
    from crossgraft.audit.spectra import EditSpectrum as EditSpectrum
    from crossgraft.audit.spectra import RiskRank as RiskRank
    from crossgraft.audit.spectra import SpectralOverlap as SpectralOverlap
    from crossgraft.audit.spectra import band_accuracy as band_accuracy
    from crossgraft.audit.spectra import edit_spectrum as edit_spectrum
    from crossgraft.audit.spectra import risk_rank as risk_rank
    from crossgraft.audit.spectra import spectral_overlap as spectral_overlap
    from crossgraft.audit.subjects import Subject as Subject
    from crossgraft.audit.subjects import subject_of as subject_of
    from crossgraft.audit.trained import TrainedAudit as TrainedAudit
    from crossgraft.audit.trained import audit_trained as audit_trained
    from crossgraft.edit.confounders.low_pass import low_pass as low_pass
    from crossgraft.edit.source_editing import high_pass as high_pass
    from crossgraft.edit.source_editing import merge_labels as merge_labels
    from crossgraft.edit.source_editing import whiten_spectrum as whiten_spectrum
    from crossgraft.edit.spectrum import mean_psd as mean_psd
    from crossgraft.edit.spectrum import normalized_psd as normalized_psd
    from crossgraft.edit.spectrum import radial_psd as radial_psd

lazy_face(__name__)
