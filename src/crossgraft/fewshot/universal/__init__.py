"""One backbone that has learned from several domains."""

from __future__ import annotations

from crossgraft.fewshot.universal.domains import DistillationSettings as DistillationSettings
from crossgraft.fewshot.universal.domains import DistilledStep as DistilledStep
from crossgraft.fewshot.universal.domains import Domain as Domain
from crossgraft.fewshot.universal.student import UniversalBackbone as UniversalBackbone
from crossgraft.fewshot.universal.student import distil_domains as distil_domains
