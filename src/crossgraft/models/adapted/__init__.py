"""Classifiers with adapters: adding, merging and removing them, and reading and writing those of PEFT."""

from typing import TYPE_CHECKING

from crossgraft.faces import lazy_face

if TYPE_CHECKING:
    from crossgraft.models.adapted.classifier_adapters import add_adapters as add_adapters
    from crossgraft.models.adapted.classifier_adapters import base_model as base_model
    from crossgraft.models.adapted.classifier_adapters import merged_copy as merged_copy
    from crossgraft.models.adapted.peft_files import PeftAdapter as PeftAdapter
    from crossgraft.models.adapted.peft_files import read_peft_adapter as read_peft_adapter
    from crossgraft.models.adapted.peft_files import write_peft_adapter as write_peft_adapter

lazy_face(__name__)
