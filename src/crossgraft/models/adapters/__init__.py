"""Small trained parts beside the layers of a network whose own weights stay as they are.

Other packages add kinds of adapters through the entry-point group ``crossgraft.adapters``.
"""

from crossgraft.models.adapters._adapter import Adapter as Adapter
from crossgraft.models.adapters._adapter import AdapterRecipe as AdapterRecipe
from crossgraft.models.adapters.adaptformer import AdaptFormer as AdaptFormer
from crossgraft.models.adapters.insertion import adapters_of as adapters_of
from crossgraft.models.adapters.insertion import add_adapters as add_adapters
from crossgraft.models.adapters.insertion import merge_adapters as merge_adapters
from crossgraft.models.adapters.insertion import merged_copy as merged_copy
from crossgraft.models.adapters.insertion import unmerge_adapters as unmerge_adapters
from crossgraft.models.adapters.insertion import without_adapters as without_adapters
from crossgraft.models.adapters.lora import Lora as Lora
from crossgraft.models.adapters.peft_read import PeftAdapter as PeftAdapter
from crossgraft.models.adapters.peft_read import read_peft_adapter as read_peft_adapter
from crossgraft.models.adapters.peft_write import write_peft_adapter as write_peft_adapter
from crossgraft.models.adapters.registry import ADAPTERS as ADAPTERS
