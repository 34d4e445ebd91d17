"""Records of models for tests that need no network."""

from crossgraft.models.record import ModelRecord, PreprocessingRecord

PREPROCESSING = PreprocessingRecord(
    height_pixels=8,
    width_pixels=8,
    channels=3,
    mean=[0.5] * 3,
    std=[0.5] * 3,
    interpolation="bilinear",
    resize_policy="crop",
    crop_fraction=1.0,
    description="8×8 px",
)


def model_record(name, *, family="f", role="candidate", architecture=None, num_parameters=1, num_source_classes=None):
    return ModelRecord(
        name=name,
        role=role,
        architecture=architecture or name,
        source="factory",
        family=family,
        licence=None,
        num_parameters=num_parameters,
        num_features=1,
        num_source_classes=num_source_classes,
        weights_fingerprint="",
        preprocessing=PREPROCESSING,
        feature_seconds=0.0,
        features_from_cache=False,
    )
