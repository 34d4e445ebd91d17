"""Does a model lean on a shortcut? Confounders under control, frequencies, and what they do to results."""

from __future__ import annotations

from crossgraft.audit.confounders.low_pass import low_pass as low_pass
from crossgraft.audit.source_editing import merge_labels as merge_labels
from crossgraft.audit.source_editing import whiten_spectrum as whiten_spectrum
from crossgraft.audit.spectral_overlap import SpectralOverlap as SpectralOverlap
from crossgraft.audit.spectral_overlap import spectral_overlap as spectral_overlap
from crossgraft.audit.spectrum import normalized_psd as normalized_psd
from crossgraft.audit.spectrum import radial_psd as radial_psd
