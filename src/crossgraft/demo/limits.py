"""What the demo cannot show, in sentences whose every figure is read off the results of this run."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from crossgraft.data import Dataset
from crossgraft.demo.honest_check import HonestCheck
from crossgraft.demo.source_tasks import SHUFFLED_LABELS
from crossgraft.metrics import accuracy_difference
from crossgraft.rank.record import AgreementRecord, RankingRecord
from crossgraft.words.formatting import MINUS


def limits_of(ranking: RankingRecord, check: HonestCheck, train: Dataset) -> list[str]:
    """From what holds for any run to what these numbers leave open."""
    return [
        _toy_models(ranking),
        _writers(check, train),
        *_agreement(ranking),
        *_fine_tuned_pairs(check),
        *_shuffled_labels(ranking),
        *_random_weights(ranking, check),
    ]


def _toy_models(ranking: RankingRecord) -> str:
    largest = max(model.num_parameters for model in ranking.models)
    return (
        f"These are toy models: at most {largest:,} parameters, 8×8 pixels, pretrained here for seconds on "
        "images that ship with scikit-learn. Their order says nothing about real backbones; the demo shows "
        "what the tool does."
    )


def _writers(check: HonestCheck, train: Dataset) -> str:
    num_test, num_train = len(np.unique(check.writers)), len(np.unique(np.asarray(train.groups)))
    return (
        "Writers stand in for patients. Who wrote which digit is reconstructed, not official (13 writers "
        f"are documented, the reconstruction gives 14). The test has {len(check.writers)} images of "
        f"{num_test} writers of whom no model has seen any digit. Its intervals are about other test "
        f"writers, not about another choice of the {len(train)} training images from {num_train} writers."
    )


def _agreement(ranking: RankingRecord) -> list[str]:
    """Sentences on whether fine-tuning supports the order by the primary score, over all models and within each family."""
    title = next(score.title for score in ranking.scores if score.name == ranking.primary_score)
    rows = [row for row in ranking.agreement if row.score == ranking.primary_score]
    return [_agreement_sentence(title, row) for row in rows]


def _agreement_sentence(title: str, row: AgreementRecord) -> str:
    among = f"Among the {row.num_models} models" + (f" of the family {row.family}" if row.family else "")
    if row.weighted_kendall is None:
        return f"{among}, {title} cannot be compared with fine-tuning: {row.reason}."
    measured = f"{among}, {title} agrees with fine-tuning with a weighted Kendall of {_signed(row.weighted_kendall)}"
    if row.low is None or row.high is None:
        return f"{measured}, without an interval: {row.reason}."
    measured += f", 95 % interval [{_signed(row.low)}, {_signed(row.high)}]"
    if row.low > 0:
        return f"{measured}: better than chance, with these models and this task."
    return f"{measured}: this does not show that its order is better than chance."


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", MINUS)


def _fine_tuned_pairs(check: HonestCheck) -> list[str]:
    """Sentences on the number of pairs of fine-tuned accuracies that differ, within each family."""
    sentences: list[str] = []
    for family in dict.fromkeys(check.family.values()):
        members = [name for name in check.full_shares if check.family[name] == family]
        pairs = list(combinations(members, 2))
        differing = sum(
            not accuracy_difference(check.full_shares[a], check.full_shares[b], check.writers).contains_zero
            for a, b in pairs
        )
        sentences.append(
            f"Even after fine-tuning, {differing} of the {len(pairs)} pairs within the family {family} "
            "differ by more than the 95 % interval of their difference over test writers (not corrected for "
            "the number of pairs)."
        )
    return sentences


def _shuffled_labels(ranking: RankingRecord) -> list[str]:
    """Sentences on the ranks of the models that were pretrained on labels without meaning."""
    rows = ranking.ranking(ranking.primary_score).rows
    ranked = [row for row in rows if row.rank is not None]
    controls = [row for row in ranked if row.model.endswith(SHUFFLED_LABELS)]
    if not controls:
        return []
    places = " and ".join(f"{row.model} at rank {row.rank}" for row in controls)
    return [
        f"Controls that were pretrained on shuffled labels stand among the {len(ranked)} candidates: "
        f"{places}. A candidate that is not separable from them or ranks below them has not shown that its "
        "source taught anything useful."
    ]


def _random_weights(ranking: RankingRecord, check: HonestCheck) -> list[str]:
    """Sentences on the number of pretrained models that beat no pretraining at all, once they are fine-tuned."""
    sentences: list[str] = []
    for control in (model for model in ranking.models if model.role == "random weights"):
        others = [name for name in check.full_shares if check.family[name] == control.family and name != control.name]
        baseline = check.full_shares[control.name]
        better = sum(accuracy_difference(check.full_shares[name], baseline, check.writers).low > 0 for name in others)
        sentences.append(
            f"Fine-tuned from random weights, the {control.family} reaches {baseline.mean():.3f}. Of its "
            f"{len(others)} pretrained versions, {better or 'none'} can be said to do better, by an interval of the "
            "difference above 0."
        )
    return sentences
