"""Pretrained networks behind one face.

``read_zoo`` turns names, checkpoint paths or a YAML file into specs; ``load_backbone`` turns a spec into a
network that gives penultimate features, source logits and activations of named layers.
"""

from typing import TYPE_CHECKING

from crossgraft.faces import lazy_face

if TYPE_CHECKING:
    from crossgraft.models.backbone import Backbone as Backbone
    from crossgraft.models.load import load_as_asked as load_as_asked
    from crossgraft.models.load import load_backbone as load_backbone
    from crossgraft.models.load import load_text_tower as load_text_tower
    from crossgraft.models.penultimate import BackboneOutput as BackboneOutput
    from crossgraft.models.sources.library import AvailableModel as AvailableModel
    from crossgraft.models.sources.library import ModelLibrary as ModelLibrary
    from crossgraft.models.sources.text_tower import TextTower as TextTower
    from crossgraft.models.spec import ModelSpec as ModelSpec
    from crossgraft.models.spec import name_in_library as name_in_library
    from crossgraft.models.zoo import list_available_models as list_available_models
    from crossgraft.models.zoo import random_weights_control as random_weights_control
    from crossgraft.models.zoo import read_zoo as read_zoo
    from crossgraft.options.models import DEFAULT_ZOO as DEFAULT_ZOO

lazy_face(__name__)
