"""Small trained parts beside the layers of a network whose own weights stay as they are.

Other packages add kinds of adapters through the entry-point group ``crossgraft.adapters``.
"""

from typing import TYPE_CHECKING

from crossgraft.faces import lazy_face

if TYPE_CHECKING:
    from crossgraft.models.adapters._adapter import Adapter as Adapter
    from crossgraft.models.adapters._adapter import AdapterRecipe as AdapterRecipe
    from crossgraft.models.adapters.adaptformer import AdaptFormerAdapter as AdaptFormerAdapter
    from crossgraft.models.adapters.insertion import ADAPTERS as ADAPTERS
    from crossgraft.models.adapters.insertion import adapters_of as adapters_of
    from crossgraft.models.adapters.insertion import merge_adapters as merge_adapters
    from crossgraft.models.adapters.insertion import unmerge_adapters as unmerge_adapters
    from crossgraft.models.adapters.insertion import without_adapters as without_adapters
    from crossgraft.models.adapters.lora import LoraAdapter as LoraAdapter
    from crossgraft.models.adapters.tsa import TaskSpecificAdapter as TaskSpecificAdapter

lazy_face(__name__)
