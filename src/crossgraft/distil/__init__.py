"""One backbone that has learned from several domains."""

from typing import TYPE_CHECKING

from crossgraft.faces import lazy_face

if TYPE_CHECKING:
    from crossgraft.distil.domains import DistillationSettings as DistillationSettings
    from crossgraft.distil.domains import DistilledStep as DistilledStep
    from crossgraft.distil.domains import Domain as Domain
    from crossgraft.distil.student import UniversalBackbone as UniversalBackbone
    from crossgraft.distil.student import distil_domains as distil_domains

lazy_face(__name__)
