"""The plain rows that commands write and reports read; nothing here computes anything.

Every record is a pydantic model: it validates when read back, prints as JSON, and its JSON schema documents the files of
a run directory. ``None`` means "there is no number", and a text field beside it says why. Bump ``SCHEMA_VERSION`` when a
field changes its meaning. One file holds the records of one topic; all names are imported from here.
"""

from crossgraft.audit.frequency_record import ArtefactFrequencies as ArtefactFrequencies
from crossgraft.audit.frequency_record import AuditFrequencies as AuditFrequencies
from crossgraft.audit.frequency_record import BandPoint as BandPoint
from crossgraft.audit.frequency_record import BandRecord as BandRecord
from crossgraft.audit.frequency_record import ModelFrequencies as ModelFrequencies
from crossgraft.audit.frequency_record import PriorityRecord as PriorityRecord
from crossgraft.audit.frequency_record import RiskPoint as RiskPoint
from crossgraft.audit.frequency_record import RiskRankRecord as RiskRankRecord
from crossgraft.audit.record import AuditCell as AuditCell
from crossgraft.audit.record import AuditDifference as AuditDifference
from crossgraft.audit.record import AuditDifferencePoint as AuditDifferencePoint
from crossgraft.audit.record import AuditEntry as AuditEntry
from crossgraft.audit.record import AuditMetric as AuditMetric
from crossgraft.audit.record import AuditMode as AuditMode
from crossgraft.audit.record import AuditOutcome as AuditOutcome
from crossgraft.audit.record import AuditPoint as AuditPoint
from crossgraft.audit.record import AuditRecord as AuditRecord
from crossgraft.audit.record import AuditTrainingRecord as AuditTrainingRecord
from crossgraft.audit.record import ConfounderRecord as ConfounderRecord
from crossgraft.audit.record import FileFactRow as FileFactRow
from crossgraft.audit.record import GateRecord as GateRecord
from crossgraft.compare.geometry_record import GeometryName as GeometryName
from crossgraft.compare.geometry_record import ModelGeometry as ModelGeometry
from crossgraft.compare.geometry_record import WeightsApart as WeightsApart
from crossgraft.compare.record import ComparedKind as ComparedKind
from crossgraft.compare.record import ComparedModel as ComparedModel
from crossgraft.compare.record import LayerCca as LayerCca
from crossgraft.compare.record import LayerGrid as LayerGrid
from crossgraft.compare.record import MeasuredFeatures as MeasuredFeatures
from crossgraft.compare.record import ModelComparisonRecord as ModelComparisonRecord
from crossgraft.compare.record import ModelPair as ModelPair
from crossgraft.compare.record import PairOf as PairOf
from crossgraft.compare.record import SharedMistakes as SharedMistakes
from crossgraft.data.checks.record import ColumnRecord, DataCheckRecord, FindingRecord, SplitDifferenceRecord
from crossgraft.data.record import DatasetRecord, FileCountRecord, SplitRow
from crossgraft.data.split_record import DataSplitRecord
from crossgraft.demo.record import (
    BestModelRecord,
    ComparedModelRecord,
    DemoPrediction,
    DemoRecord,
    FineTunedRow,
    SplitComparison,
)
from crossgraft.distil.record import DistillationRecord as DistillationRecord
from crossgraft.distil.record import DistilledDomainRecord as DistilledDomainRecord
from crossgraft.distil.record import DistilledStepsRecord as DistilledStepsRecord
from crossgraft.edit.contact_sheets_record import ContactSheetRow as ContactSheetRow
from crossgraft.edit.contact_sheets_record import ContactSheetsRecord as ContactSheetsRecord
from crossgraft.edit.contact_sheets_record import ShownImageRow as ShownImageRow
from crossgraft.edit.record import EditedClassRow as EditedClassRow
from crossgraft.edit.record import EditedImagesRecord as EditedImagesRecord
from crossgraft.edit.record import EditedPartRow as EditedPartRow
from crossgraft.edit.record import EditRecord as EditRecord
from crossgraft.edit.record import EditRow as EditRow
from crossgraft.export.record import ExportedFileRecord, ExportedModelRecord, ExportRecord, OutputAgreementRecord
from crossgraft.fewshot.record import BoundRecord as BoundRecord
from crossgraft.fewshot.record import EpisodeLookRecord as EpisodeLookRecord
from crossgraft.fewshot.record import EpisodesPart as EpisodesPart
from crossgraft.fewshot.record import FewshotRecord as FewshotRecord
from crossgraft.fewshot.record import HeadLookRecord as HeadLookRecord
from crossgraft.fewshot.record import HeadRow as HeadRow
from crossgraft.fewshot.record import SizeRow as SizeRow
from crossgraft.geometry.maps_record import AttentionRecord as AttentionRecord
from crossgraft.geometry.maps_record import AttentionRow as AttentionRow
from crossgraft.geometry.maps_record import FeatureMapRecord as FeatureMapRecord
from crossgraft.geometry.maps_record import FilterRow as FilterRow
from crossgraft.geometry.maps_record import FiltersRecord as FiltersRecord
from crossgraft.geometry.maps_record import MappedNetworkRow as MappedNetworkRow
from crossgraft.geometry.maps_record import TsneRecord as TsneRecord
from crossgraft.geometry.maps_record import TsneRow as TsneRow
from crossgraft.geometry.record import CentreTaskRow as CentreTaskRow
from crossgraft.geometry.record import DistanceRow as DistanceRow
from crossgraft.geometry.record import ForgettingRecord as ForgettingRecord
from crossgraft.geometry.record import InterpolationPathRecord as InterpolationPathRecord
from crossgraft.geometry.record import ParameterDistanceRecord as ParameterDistanceRecord
from crossgraft.geometry.record import PathPointRow as PathPointRow
from crossgraft.geometry.record import ProbeRow as ProbeRow
from crossgraft.geometry.record import SharpnessRecord as SharpnessRecord
from crossgraft.geometry.record import SharpnessRow as SharpnessRow
from crossgraft.geometry.record import WeightDistance as WeightDistance
from crossgraft.interpolate.record import InterpolationPoint, InterpolationRecord
from crossgraft.metrics.record import (
    CalibrationRecord,
    ConfusionRecord,
    MetricRecord,
    ReliabilityBin,
    RocRecord,
    ThresholdRecord,
)
from crossgraft.models.record import ModelRecord, PreprocessingRecord, Role
from crossgraft.published.record import PublishedRecord
from crossgraft.rank.known_record import STATIC_PRIOR, KnownResult, PriorRecord, PriorRow
from crossgraft.rank.published.record import (
    AnswerRecord,
    CitedTable,
    FriedmanRecord,
    MeanRecord,
    MethodRecord,
    ReproductionRecord,
    ScenarioRecord,
    SlipRecord,
)
from crossgraft.rank.record import (
    AgreementRecord,
    GroundTruthRecord,
    PairRecord,
    RankingByScore,
    RankingRecord,
    RankRow,
    ScoreCell,
    ScoreRecord,
)
from crossgraft.records.base import SCHEMA_VERSION, CheckRecord, Record, Reference, Severity, StageRecord, Thumbnail
from crossgraft.records.looks import Look, LooksRecord
from crossgraft.records.runs import RunRecord
from crossgraft.select.record import CandidateRecord, PlannedModel, SelectionPlanRecord, SelectionRecord
from crossgraft.select.replay.record import OrderRow, ReplayRecord, ReplayRow
from crossgraft.tune.epochs_record import EpochRow
from crossgraft.tune.gradients_record import BlockGradientRecord, GradientNormsRecord
from crossgraft.tune.keeping_record import BatchNormRecord, KeepRecord
from crossgraft.tune.mistakes_record import MistakeRecord as MistakeRecord
from crossgraft.tune.mistakes_record import MistakesRecord as MistakesRecord
from crossgraft.tune.plugins_record import PluginRecord
from crossgraft.tune.prediction_record import PredictionRecord, PredictionRow
from crossgraft.tune.record import FoldRecord, GridPointRecord, PlanRecord, PlanRow, TunedModelRecord, TuningRecord
from crossgraft.tune.saving.record import SavedModelRecord, TrainingDataRecord
from crossgraft.variants.layer_pca_record import LayerPcaPanel, LayerPcaRecord
from crossgraft.variants.record import (
    ComparedPlan,
    ComparedTrainingRecord,
    ComparedVariantRecord,
    ComparisonPlanRecord,
    DifferenceRecord,
    FineTuningComparisonRecord,
    ValueRecord,
)

__all__ = [
    "AgreementRecord",
    "AnswerRecord",
    "BatchNormRecord",
    "BestModelRecord",
    "BlockGradientRecord",
    "CalibrationRecord",
    "CandidateRecord",
    "CheckRecord",
    "CitedTable",
    "ColumnRecord",
    "ComparedModelRecord",
    "ComparedPlan",
    "ComparedTrainingRecord",
    "ComparedVariantRecord",
    "ComparisonPlanRecord",
    "ConfusionRecord",
    "DataCheckRecord",
    "DataSplitRecord",
    "DatasetRecord",
    "DemoPrediction",
    "DemoRecord",
    "DifferenceRecord",
    "EpochRow",
    "ExportRecord",
    "ExportedFileRecord",
    "ExportedModelRecord",
    "FileCountRecord",
    "FindingRecord",
    "FineTunedRow",
    "FineTuningComparisonRecord",
    "FoldRecord",
    "FriedmanRecord",
    "GradientNormsRecord",
    "GridPointRecord",
    "GroundTruthRecord",
    "InterpolationPoint",
    "InterpolationRecord",
    "KeepRecord",
    "KnownResult",
    "LayerPcaPanel",
    "LayerPcaRecord",
    "Look",
    "LooksRecord",
    "MeanRecord",
    "MethodRecord",
    "MetricRecord",
    "ModelRecord",
    "OrderRow",
    "OutputAgreementRecord",
    "PairRecord",
    "PlanRecord",
    "PlanRow",
    "PlannedModel",
    "PluginRecord",
    "PredictionRecord",
    "PredictionRow",
    "PreprocessingRecord",
    "PriorRecord",
    "PriorRow",
    "PublishedRecord",
    "RankRow",
    "RankingByScore",
    "RankingRecord",
    "Record",
    "Reference",
    "ReliabilityBin",
    "ReplayRecord",
    "ReplayRow",
    "ReproductionRecord",
    "RocRecord",
    "Role",
    "RunRecord",
    "SCHEMA_VERSION",
    "STATIC_PRIOR",
    "SavedModelRecord",
    "ScenarioRecord",
    "ScoreCell",
    "ScoreRecord",
    "SelectionPlanRecord",
    "SelectionRecord",
    "Severity",
    "SlipRecord",
    "SplitComparison",
    "SplitDifferenceRecord",
    "SplitRow",
    "StageRecord",
    "ThresholdRecord",
    "Thumbnail",
    "TrainingDataRecord",
    "TunedModelRecord",
    "TuningRecord",
    "ValueRecord",
]
