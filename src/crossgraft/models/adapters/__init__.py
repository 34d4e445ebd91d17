"""Small trained parts beside the layers of a network whose own weights stay as they are.

Other packages add kinds of adapters through the entry-point group ``crossgraft.adapters``.
"""

from typing import TYPE_CHECKING

from crossgraft.faces import lazy_face

if TYPE_CHECKING:
    from crossgraft.models.adapters._adapter import Adapter as Adapter
    from crossgraft.models.adapters._adapter import AdapterRecipe as AdapterRecipe
    from crossgraft.models.adapters.adaptformer import AdaptFormerAdapter as AdaptFormerAdapter
    from crossgraft.models.adapters.insertion import adapters_of as adapters_of
    from crossgraft.models.adapters.insertion import merge_adapters as merge_adapters
    from crossgraft.models.adapters.insertion import unmerge_adapters as unmerge_adapters
    from crossgraft.models.adapters.insertion import without_adapters as without_adapters
    from crossgraft.models.adapters.lora import LoraAdapter as LoraAdapter
    from crossgraft.models.adapters.registry import ADAPTERS as ADAPTERS
    from crossgraft.models.adapters.tsa import TaskSpecificAdapter as TaskSpecificAdapter

_MOVED = ["add_adapters", "merged_copy", "read_peft_adapter", "write_peft_adapter"]
_RENAMED = {"AdaptFormer": f"{__name__}:AdaptFormerAdapter", "Lora": f"{__name__}:LoraAdapter"}
lazy_face(__name__, moved=dict.fromkeys(_MOVED, "crossgraft.models.adapted") | _RENAMED)
