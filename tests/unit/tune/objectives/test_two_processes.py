"""Objectives and MixStyle in two processes; all in one training, because starting a process takes seconds."""

from dataclasses import dataclass
from typing import ClassVar

import pytest

from crossgraft.tune.feature_transforms import MixStyle
from crossgraft.tune.objectives import IRM, GroupDRO, Objective, VREx
from crossgraft.tune.regularizers import SelfIdentityMapping
from support import forked
from support.training import DoubleFeed, largest_difference, train_one

PARTS = {
    "irm": IRM(weight=3.0, anneal_steps=2),
    "vrex": VREx(weight=2.0, anneal_steps=0),
    "group_dro": GroupDRO(eta=0.5, groups="domains_and_classes"),
}


@dataclass
class Sum(Objective):
    """All of them at once, or one of them."""

    name: ClassVar[str] = "sum"
    title: ClassVar[str] = "Sum"
    citation: ClassVar[str] = "test"
    needs_domains: ClassVar[bool] = True

    parts: tuple[str, ...] = tuple(PARTS)

    def attach(self, *, num_domains, num_classes):
        for name in self.parts:
            PARTS[name].attach(num_domains=num_domains, num_classes=num_classes)

    def __call__(self, context):
        return {f"{part} {name}": term for part in self.parts for name, term in PARTS[part](context).items()}


@pytest.mark.slow
@pytest.mark.usefixtures("forked_processes")
@pytest.mark.xdist_group(forked.GROUP)
def test_two_processes_with_uneven_shares_are_one_with_the_whole_batch():
    common = {"feed": DoubleFeed(7, num_domains=2), "num_domains": 2, "precision": "64-true"}
    common |= {"regularizers": [SelfIdentityMapping(weight=0.5)], "feature_transforms": [MixStyle(p=1.0, alpha=1.0)]}
    one, alone = train_one("plain", **common, objective=Sum())
    two, together = train_one("plain", num_processes=2, **common, objective=Sum())
    assert largest_difference(one, two) < 1e-10
    for first, second in zip(alone.history, together.history, strict=True):
        assert first.terms == pytest.approx(second.terms, abs=1e-10)
    task, _ = train_one("plain", **common)
    for name in PARTS:  # each of them moves what is compared
        moved, _ = train_one("plain", **common, objective=Sum((name,)))
        assert largest_difference(moved, task) > 1e-6, name
    plain, _ = train_one("plain", **{**common, "feature_transforms": []})
    assert largest_difference(plain, task) > 1e-6
