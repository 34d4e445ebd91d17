"""What a comparison of two models leaves."""

from crossgraft.compare.record import ComparedModel, LayerGrid, MeasuredFeatures, ModelComparisonRecord, ModelPair
from crossgraft.records.base import Reference


def compared(label, name, **changed):
    facts = {
        "label": label,
        "name": name,
        "kind": "pretrained",
        "architecture": name,
        "weights_fingerprint": "ab" * 32,
        "start_fingerprint": None,
        "num_features": 8,
        "layers": ["stem", "block"],
        "images_become": "64×64 px",
    }
    return ComparedModel(**(facts | changed))


def grid(values):
    names = ["stem", "block"]
    return LayerGrid(rows=names, columns=names, values=values, estimator="exact", num_images=40)


def model_comparison_record(dataset, **changed):
    """Two pretrained networks; ``dataset`` is that of another record."""
    pair = ModelPair(
        first="A",
        second="B",
        of="models",
        cka=grid([[0.9, 0.4], [0.3, 0.6]]),
        cka_untrained=grid([[0.8, 0.7], [0.7, 0.8]]),
        features=[
            MeasuredFeatures(measure="cka", value=0.5, untrained=0.6),
            MeasuredFeatures(measure="cka_debiased", value=0.4, untrained=0.5),
        ],
        cca_reason="no layer of both has the same place",
        mistakes_reason="wide has no head for these classes",
    )
    facts = {
        "models": [compared("A", "wide"), compared("B", "narrow")],
        "pairs": [pair],
        "dataset": dataset,
        "num_images": 40,
        "images_in_words": "40 test rows",
        "pool": "mean",
        "cca_preset": "thesis",
        "seed": 0,
        "references": [Reference(key="CKA", text="Kornblith.")],
        "seconds": 1.0,
    }
    return ModelComparisonRecord(**(facts | changed))
