"""One backbone that has learned from several domains."""

from __future__ import annotations

from crossgraft.distil.domains import DistillationSettings as DistillationSettings
from crossgraft.distil.domains import DistilledStep as DistilledStep
from crossgraft.distil.domains import Domain as Domain
from crossgraft.distil.student import UniversalBackbone as UniversalBackbone
from crossgraft.distil.student import distil_domains as distil_domains
