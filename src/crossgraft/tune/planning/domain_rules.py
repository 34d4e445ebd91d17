"""What domains of the training images allow, and what should be known about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Int64

from crossgraft.data.domains import Domains
from crossgraft.tasks import Task
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.feed.batches import Sampler, whole_shares
from crossgraft.tune.parts import TuningRows
from crossgraft.tune.planning.choices import Plugins
from crossgraft.tune.planning.step_cost import steps_per_epoch
from crossgraft.words.formatting import counted, joined


@dataclass(frozen=True, eq=False)
class TrainingDomains:
    """Training images of one fold, by domain.

    Attributes:
        column: Column that says where an image comes from.
        names: Domains that have training images.
        class_names: Classes or labels.
        counts: Images of each domain and class; where an image may have several labels, of each label.
        sizes: Images of each domain.
        where: The one of several trainings, after a noun: `` of fold 1``, `` without OSLO``; empty for the only one.
    """

    column: str
    names: tuple[str, ...]
    class_names: tuple[str, ...]
    counts: Int64[np.ndarray, "num_domains num_classes"]
    sizes: Int64[np.ndarray, " num_domains"]
    where: str = ""

    def strata(self, sampler: Sampler) -> dict[str, int]:
        """Name and size of what the sampler draws equally often from; empty for one that knows no domains."""
        if sampler == "domains":
            return {f"{self.column} {name}": int(size) for name, size in zip(self.names, self.sizes, strict=True)}
        if sampler == "domains_and_classes":
            cells = np.argwhere(self.counts)
            return {self._cell(domain, label): int(self.counts[domain, label]) for domain, label in cells.tolist()}
        return {}

    @property
    def empty_cells(self) -> list[str]:
        """Classes that a domain has no image of."""
        return [self._cell(domain, label) for domain, label in np.argwhere(self.counts == 0).tolist()]

    @property
    def classes_of_one_domain(self) -> dict[str, str]:
        """Class that only one domain has → that domain."""
        alone = np.flatnonzero((self.counts > 0).sum(0) == 1) if len(self.names) > 1 else ()
        return {self.class_names[label]: self.names[int(self.counts[:, label].argmax())] for label in alone}

    def _cell(self, domain: int, label: int) -> str:
        return f"class {self.class_names[label]} of {self.column} {self.names[domain]}"


def training_domains(rows: TuningRows) -> tuple[TrainingDomains, ...]:
    """Those of each fold; empty where nobody said where images come from."""
    if rows.domains is None:
        return ()
    return tuple(_of_fold(rows, rows.domains, number) for number in range(len(rows.parts)))


def _of_fold(rows: TuningRows, domains: Domains, number: int) -> TrainingDomains:
    dataset, parts = rows.dataset, rows.parts[number]
    marks = dataset.task.marks(dataset.targets[parts.train], len(dataset.class_names))
    index = domains.index[parts.train]
    present = np.unique(index)
    return TrainingDomains(
        column=domains.column,
        names=tuple(domains.names[place] for place in present),
        class_names=tuple(dataset.class_names),
        counts=np.stack([marks[index == place].sum(0) for place in present]).astype(np.int64),
        sizes=np.array([(index == place).sum() for place in present], dtype=np.int64),
        where=parts.where,
    )


def refusal_by_domains(plugins: Plugins, settings: TrainerSettings, task: Task, folds: Sequence[TrainingDomains]) -> str | None:
    """Why objective and sampler cannot be used with these domains, and what to do; None where they can."""
    objective, sampler = plugins.objective, plugins.sampler
    typed = f"--objective {objective.name}"
    if not objective.is_plain_mean and settings.accumulate > 1:
        return (
            f"{typed} looks at a whole batch at once, and --accumulate {settings.accumulate} cuts it. Leave --accumulate out, "
            "with a smaller --batch-size if memory is short."
        )
    by_domain = sampler in _DRAWN_BY_DOMAIN
    if not folds and (objective.needs_domains or by_domain):
        asked = typed if objective.needs_domains else f"--sampler {sampler}"
        return (
            f"{asked} needs to know where images come from. Name the column that says it with --domains COLUMN (of tune and "
            f"select), or leave {asked} out."
        )
    if objective.sampler is not None and sampler not in _GIVES.get(objective.sampler, (objective.sampler,)):
        return (
            f"{typed} needs as many images of each group in every batch, and --sampler {sampler} does not see to that. Leave "
            f"--sampler out, or say --sampler {objective.sampler}."
        )
    if sampler == "domains_and_classes" and not task.partitions:
        return (
            "--sampler domains_and_classes draws each class equally often, but these images may have several labels. Say "
            "--sampler domains, with --objective group_dro:groups=domains."
        )
    if not by_domain and not objective.needs_domains:
        return None
    reasons = (_refusal_in(each, plugins, settings) for each in folds)
    return next(filter(None, reasons), None)


_DRAWN_BY_DOMAIN = ("domains", "domains_and_classes")
_GIVES = {"domains": _DRAWN_BY_DOMAIN}
"""Sampler that is needed → samplers that do as well."""


def _refusal_in(domains: TrainingDomains, plugins: Plugins, settings: TrainerSettings) -> str | None:
    objective, sampler, column = plugins.objective, plugins.sampler, domains.column
    asked = f"--objective {objective.name}" if objective.needs_domains else f"--sampler {sampler}"
    first, *others = domains.names
    if not others:
        return (
            f"All training images{domains.where} come from {column} {first}, and {asked} needs two domains at least. "
            f"Train on images of another one too, or leave {asked} out."
        )
    if objective.sampler == "domains_and_classes" and (empty := domains.empty_cells):
        return (
            f"{asked} weighs each class of each domain, and the training images{domains.where} have none of "
            f"{joined(empty)}. Take --objective group_dro:groups=domains, bring such images, or leave the class out."
        )
    strata = domains.strata(sampler)
    if not strata:
        return None
    kinds, fewest = len(strata), objective.fewest_per_group
    share, smallest = settings.batch_size // kinds, min(strata, key=lambda name: strata[name])
    if share < fewest:
        return (
            f"--batch-size {settings.batch_size} has no place for {counted(fewest, 'image')} of each of {kinds} "
            f"{_KINDS[sampler]}{domains.where}, which {asked} needs. Say --batch-size {kinds * fewest} or more."
        )
    if strata[smallest] < fewest:
        return (
            f"{asked} needs {counted(fewest, 'image')} of each of the {_KINDS[sampler]} in every batch, and the training "
            f"images{domains.where} have {strata[smallest]} of {smallest}. Bring more, or leave these images out."
        )
    if strata[smallest] < share:
        return (
            f"In batches of {settings.batch_size} each of {kinds} {_KINDS[sampler]} has {counted(share, 'image')}, and the "
            f"training images{domains.where} have {strata[smallest]} of {smallest}: a batch would show the same ones twice. Say "
            f"--batch-size {strata[smallest] * kinds} or less, or leave these images out."
        )
    return None


_KINDS = {"domains": "domains", "domains_and_classes": "classes in domains"}


def warnings_by_domains(plugins: Plugins, settings: TrainerSettings, folds: Sequence[TrainingDomains]) -> list[str]:
    """What is seldom meant: a training too short for its objective, and a class that is told by whatever tells its domain."""
    found: list[str] = []
    if folds:
        num_steps = settings.epochs * steps_per_epoch(int(folds[0].sizes.sum()), settings.batch_size)
        found += filter(None, [plugins.objective.warning_of_length(num_steps)])
    for each in folds:
        if alone := each.classes_of_one_domain:
            pairs = [f"{name} ({each.column} {domain})" for name, domain in alone.items()]
            return [
                *found,
                f"Some classes have training images{each.where} in one domain alone: "
                f"{joined(pairs)}. There whatever tells the domain tells the class, and no objective can take them apart.",
            ]
    return found


def notes_by_domains(plugins: Plugins, settings: TrainerSettings, folds: Sequence[TrainingDomains]) -> list[str]:
    """For the plan: what a batch is made of."""
    notes: list[str] = []
    strata = folds[0].strata(plugins.sampler) if folds else {}
    if strata:
        share, most = settings.batch_size // len(strata), max(strata.values())
        notes.append(
            f"Every batch has {counted(share, 'image')} of each of {len(strata)} {_KINDS[plugins.sampler]}. One with fewer "
            f"images than others ({min(strata.values())} to {most}) is gone through more often."
        )
    if folds and any(getattr(each, "mixes_images", False) for each in plugins.batch_transforms):
        notes.append("Images are mixed with those of their own domain only.")
    return notes


def in_whole_shares(
    settings: TrainerSettings, plugins: Plugins, folds: Sequence[TrainingDomains], *, is_asked: bool
) -> TrainerSettings:
    """Settings with the batches that the sampler makes in the first fold; as they are where it cannot make any.

    A size that nobody asked for is as large as the objective needs, and no larger than the smallest stratum of a fold allows.
    """
    strata = [each.strata(plugins.sampler) for each in folds]
    number = len(strata[0]) if strata else 0
    if not number:
        return settings
    size, least = settings.batch_size, number * plugins.objective.fewest_per_group
    if not is_asked:
        size = max(least, min(size, number * min(min(each.values()) for each in strata)))
    return settings if size < least else replace(settings, batch_size=whole_shares(size, number))
