"""Few-shot adaptation: heads that learn a task from a handful of labelled images, on a frozen backbone."""

from typing import TYPE_CHECKING

from crossgraft.faces import lazy_face

if TYPE_CHECKING:
    from crossgraft.fewshot.class_weights import class_weights_from_head as class_weights_from_head
    from crossgraft.fewshot.class_weights import class_weights_from_prompts as class_weights_from_prompts
    from crossgraft.fewshot.episodes import SAMPLERS as SAMPLERS
    from crossgraft.fewshot.episodes import Description as Description
    from crossgraft.fewshot.episodes import Episode as Episode
    from crossgraft.fewshot.episodes import MetaDataset as MetaDataset
    from crossgraft.fewshot.episodes import NWayKShot as NWayKShot
    from crossgraft.fewshot.episodes import Sampler as Sampler
    from crossgraft.fewshot.episodes import describe_episode as describe_episode
    from crossgraft.fewshot.episodes import sample_episode as sample_episode
    from crossgraft.fewshot.evaluate import EpisodeTable as EpisodeTable
    from crossgraft.fewshot.evaluate import MeanWithInterval as MeanWithInterval
    from crossgraft.fewshot.evaluate import evaluate as evaluate
    from crossgraft.fewshot.evaluate import joined as joined
    from crossgraft.fewshot.heads import HEADS as HEADS
    from crossgraft.fewshot.heads import CopaHead as CopaHead
    from crossgraft.fewshot.heads import CopaTsa as CopaTsa
    from crossgraft.fewshot.heads import FineTuningHead as FineTuningHead
    from crossgraft.fewshot.heads import Head as Head
    from crossgraft.fewshot.heads import LogisticHead as LogisticHead
    from crossgraft.fewshot.heads import MetaAdapterHead as MetaAdapterHead
    from crossgraft.fewshot.heads import NccHead as NccHead
    from crossgraft.fewshot.heads import RidgeHead as RidgeHead
    from crossgraft.fewshot.heads import TipAdapterHead as TipAdapterHead
    from crossgraft.fewshot.heads import TsaAdapter as TsaAdapter
    from crossgraft.fewshot.heads import UrlHead as UrlHead
    from crossgraft.fewshot.heads import ZeroShotHead as ZeroShotHead
    from crossgraft.fewshot.look import Gap as Gap
    from crossgraft.fewshot.look import GapShift as GapShift
    from crossgraft.fewshot.look import gap as gap

lazy_face(__name__)
