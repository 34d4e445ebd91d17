"""What is recorded of metrics: values with intervals, calibration, thresholds, confusions, ROC curves."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field, model_validator

from crossgraft.records.base import Count, Record, Share, SparseRecord


class MetricRecord(Record):
    """One measure of one part of the data, with its 95 % interval."""

    metric: str
    title: str
    value: float | None
    low: float | None = None
    high: float | None = None
    reason: str | None = Field(default=None, description="Why there is no value.")
    no_interval_reason: str | None = None
    split: str = Field(default="test", description="The rows it was measured on: 'test', 'val', 'out of fold', 'unseen domains'.")
    num_images: int
    num_groups: int | None = Field(default=None, description="None: images were taken as independent.")
    class_name: str | None = Field(default=None, description="The class (or label) it is about; None: all of them.")
    attribute: str | None = Field(default=None, description="The column that makes the subgroup; None: all images.")
    attribute_value: str | None = None
    higher_is_better: bool = True
    explanation: str = ""

    @property
    def number(self) -> dict[str, object]:
        """As a result names the number that stands for it."""
        return {"metric": self.metric, "value": self.value, "low": self.low, "high": self.high, "split": self.split}


class ReliabilityBin(SparseRecord):
    """Test images whose highest probability (or probability of the label) lies in one bin."""

    sparse: ClassVar[frozenset[str]] = frozenset({"variance_of_groups"})
    low: float
    high: float
    num_images: int
    mean_probability: float | None
    share_right: float | None
    variance_of_groups: float | None = Field(
        default=None,
        description="Variance of the sum of probability minus right over groups (of labels: images); None: images are alone.",
    )


class CalibrationRecord(Record):
    """The temperature, and what it did to the calibration error of rows that it was not fitted on."""

    temperature: float | None
    reason: str | None = Field(default=None, description="Why there is no temperature.")
    fitted_on: str
    num_images: int
    error_raw: float | None = Field(description="Expected calibration error before.")
    error_calibrated: float | None = Field(description="Expected calibration error after.")
    bins_raw: list[ReliabilityBin] = []
    bins_calibrated: list[ReliabilityBin] = []
    temperatures: list[float] = Field(default=[], description="With folds: of each one.")


class ThresholdRecord(Record):
    """From which probability on a class, or a label, is decided for."""

    class_name: str
    threshold: float | None
    rule: str
    fitted_on: str
    num_positive: int | None = None
    sensitivity: float | None = Field(default=None, description="On the rows it was fitted on.")
    specificity: float | None = None
    reason: str | None = Field(default=None, description="Why there is no threshold.")


class ConfusionRecord(Record):
    """How many images of each class were taken for each class."""

    class_names: list[str] = Field(min_length=1)
    counts: list[list[Count]] = Field(description="Row: the true class, column: the predicted one.")
    split: str = "test"

    @model_validator(mode="after")
    def _one_row_and_column_per_class(self) -> ConfusionRecord:
        num_classes = len(self.class_names)
        if [len(row) for row in self.counts] != [num_classes] * num_classes:
            raise ValueError(f"counts needs {num_classes} rows and columns, one per name in class_names")
        return self


class RocRecord(Record):
    """Sensitivity and false alarms of one class against all others, for every threshold; at most 200 points."""

    class_name: str
    false_positive_rates: list[Share]
    true_positive_rates: list[Share]
    at_threshold: tuple[float, float] | None = Field(
        default=None, description="False and true positive rate at the threshold that was fitted."
    )
    split: str = "test"

    @model_validator(mode="after")
    def _one_point_per_pair(self) -> RocRecord:
        lengths = len(self.false_positive_rates), len(self.true_positive_rates)
        if lengths[0] != lengths[1]:
            raise ValueError(f"{lengths[0]} false_positive_rates for {lengths[1]} true_positive_rates")
        return self
