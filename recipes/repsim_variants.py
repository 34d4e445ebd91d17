"""What the study of docs/results/repsim.md compares."""

from __future__ import annotations

from typing import Any, NamedTuple

MODES_OF_BATCH_NORM = ("train", "frozen", "adapt")
DEFAULT = "repsim"
"""What ``--regularizer repsim`` says of features: 1 − CKA, with a weight that grows with their width."""
FORMS = {DEFAULT: "mode=cka", "batch": "reference=batch", "paper": "preset=paper", "procrustes": "mode=procrustes"}
"""Of RepSim: name → options."""
WEIGHTS = (1.0, 0.1, 10.0)
"""All but the default have the first where no other is said."""
CURVE_ENDS = ("full", "linear")
"""They leave run directories, because the interpolated networks lie between them."""


def by_weight(form: str) -> dict[str, str]:
    """Weight in words → variant, with the one that holds where no other is said."""
    usual = "0.3 √(d / 64)" if form == DEFAULT else f"{WEIGHTS[0]:g}"
    others = {f"{weight:g}": f"{form} × {weight:g}" for weight in sorted(WEIGHTS)}
    return {**others, usual: form}


class Variant(NamedTuple):
    """One way to fine-tune.

    Attributes:
        options: Of ``fine_tune``.
        is_swept: Whether it differs from another one in its weight alone, which is looked at last, with one seed, and with
            the statistics of each batch.
    """

    options: dict[str, Any]
    is_swept: bool = False


def default_variant(*, has_batch_norm: bool) -> str:
    """What ``--regularizer repsim`` trains on its own: statistics of BatchNorm stay as they came."""
    return f"{DEFAULT}, frozen" if has_batch_norm else DEFAULT


def variants(*, has_batch_norm: bool) -> dict[str, Variant]:
    """By name, in the order in which they are trained; what ``adapt`` does not change is trained once.

    FULL, L2-SP and LINEAR do not look at features of the starting network, so ``adapt`` leaves the first two as they are in
    mode ``train``.
    """
    found: dict[str, Variant] = {}
    for modes, name, options in _kinds():
        for mode in modes if has_batch_norm else modes[:1]:
            in_mode = {"batch_norm": mode} if has_batch_norm else {}
            said = f"{name}, {mode}" if has_batch_norm and mode != "train" else name
            found[said] = Variant({**options, **in_mode}, "×" in name)
    return found


def _kinds() -> list[tuple[tuple[str, ...], str, dict[str, Any]]]:
    """Modes of BatchNorm, name, options."""
    of_features = MODES_OF_BATCH_NORM
    kinds = [
        (("train", "adapt"), "linear", {"method": "linear"}),
        (("train", "frozen"), "full", {}),
        (of_features, DEFAULT, {"regularizer": "repsim"}),
        (of_features, "batch", {"regularizer": f"repsim:{FORMS['batch']}"}),
        (of_features, "paper", {"regularizer": f"repsim:{FORMS['paper']}"}),
        (of_features, "hcs 0.8", {"regularizer": "hcs:0.8"}),
        (of_features, "procrustes", {"regularizer": f"repsim:{FORMS['procrustes']}"}),
        (("train", "frozen"), "l2_sp", {"regularizer": "l2_sp"}),
    ]
    for weight in WEIGHTS:
        kinds += [
            (("train",), f"{name} × {weight:g}", {"regularizer": f"repsim:{weight:g},{said}"})
            for name, said in FORMS.items()
            if name == DEFAULT or weight != WEIGHTS[0]
        ]
    return kinds
