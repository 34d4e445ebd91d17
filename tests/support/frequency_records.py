"""Frequencies of an audit."""

from crossgraft.audit.record import (
    ArtefactFrequencies,
    AuditFrequencies,
    BandPoint,
    BandRecord,
    ModelFrequencies,
    PriorityRecord,
    RiskPoint,
    RiskRankRecord,
)

FREQUENCIES = [0.0, 0.125, 0.25, 0.375]


def artefact(confounder="low_pass:0.244", overlap=0.625, **changed):
    facts = {
        "confounder": confounder,
        "scope": "global",
        "psd": [0, 0.25, 0.25, 0.5],
        "num_changed": 20,
        "input_rms": 0.125,
        "overlap": overlap,
        "cosine": 0.75,
        "spearman": 0.5,
        "distance": 0.1,
        "flat": 0.875,
        "is_informative": True,
        "reason": None,
    }
    return ArtefactFrequencies(**(facts | changed))


def priority(network="pretrained", objective="features", psd=(0, 0.5, 0.25, 0.25)):
    return PriorityRecord(network=network, objective=objective, psd=list(psd), num_saturated=0)


def model_frequencies(model="mobilenetv2_100", **changed):
    facts = {
        "model": model,
        "num_images": 20,
        "frequencies": FREQUENCIES,
        "images": [0, 0.75, 0.125, 0.125],
        "priorities": [priority()],
        "artefacts": [artefact()],
    }
    return ModelFrequencies(**(facts | changed))


def bands(**changed):
    points = [
        BandPoint(kind=kind, cutoff=cutoff, value=value, low=value - 0.125, high=value + 0.125)
        for kind, values in (("low", (0.5, 0.75)), ("high", (0.875, 0.625)))
        for cutoff, value in zip((0.125, 0.25), values, strict=True)
    ]
    facts = {"positive": "malignant", "chance": 0.5, "clean": 0.875, "clean_low": 0.75, "clean_high": 0.9375}
    return BandRecord(**(facts | {"points": points} | changed))


def tuned_frequencies(**changed):
    """A tuned network, the pretrained one that it came from, and its AUC under filters."""
    priorities = [priority("tuned", "true labels"), priority(), priority("tuned", psd=(0, 0.25, 0.25, 0.5))]
    seen = [artefact(overlap_before=0.375, overlap_after=0.8125)]
    facts = {"priorities": priorities, "artefacts": seen, "bands": bands()}
    return model_frequencies(**(facts | changed))


def risk_rank_record(number=5, confounder="low_pass:0.244", **changed):
    points = [
        RiskPoint(model=f"net {place}", overlap=place / 10, reliance=place / 8, low=None, high=None) for place in range(number)
    ]
    facts = {"confounder": confounder, "points": points, "spearman": 0.9375, "p_value": 0.0625, "reason": None}
    return RiskRankRecord(**(facts | changed))


def audit_frequencies(*models, ranks=()):
    return AuditFrequencies(models=list(models or [model_frequencies()]), ranks=list(ranks))
