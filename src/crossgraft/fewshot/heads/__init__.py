"""What learns from a few labelled images, by their features or inside the backbone: one file each, named as published.

Other packages add heads through the entry-point group ``crossgraft.heads``.
"""

from __future__ import annotations

from typing import Any

from crossgraft.fewshot.heads._head import Head as Head
from crossgraft.fewshot.heads._head import reads_images as reads_images
from crossgraft.fewshot.heads.copa import CopaHead as CopaHead
from crossgraft.fewshot.heads.copa_tsa import CopaTsa as CopaTsa
from crossgraft.fewshot.heads.fine_tuning import FineTuningHead as FineTuningHead
from crossgraft.fewshot.heads.logistic import LogisticHead as LogisticHead
from crossgraft.fewshot.heads.meta_adapter import MetaAdapterHead as MetaAdapterHead
from crossgraft.fewshot.heads.ncc import NccHead as NccHead
from crossgraft.fewshot.heads.ridge import RidgeHead as RidgeHead
from crossgraft.fewshot.heads.tip_adapter import TipAdapterHead as TipAdapterHead
from crossgraft.fewshot.heads.tsa import TsaAdapter as TsaAdapter
from crossgraft.fewshot.heads.url import UrlHead as UrlHead
from crossgraft.fewshot.heads.zero_shot import ZeroShotHead as ZeroShotHead
from crossgraft.registry import Registry

HEADS: Registry[type[Any]] = Registry("head", group="crossgraft.heads", plugin_type=type)
"""Every head that is installed: the classes, whose fields are their options."""
for _head in (
    *(NccHead, UrlHead, CopaHead, TipAdapterHead, MetaAdapterHead, ZeroShotHead, LogisticHead, RidgeHead),
    *(TsaAdapter, CopaTsa, FineTuningHead),
):
    HEADS.add(_head.name, _head)
