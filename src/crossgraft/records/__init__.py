"""The plain rows that commands write and reports read; nothing here computes anything.

Every record is a pydantic model: it validates when read back, prints as JSON, and its JSON schema documents the files of
a run directory. ``None`` means "there is no number", and a text field beside it says why. Bump ``SCHEMA_VERSION`` when a
field changes its meaning. One file holds the records of one topic; all names are imported from here.
"""

from crossgraft.metrics.record import (
    CalibrationRecord,
    ConfusionRecord,
    MetricRecord,
    ReliabilityBin,
    RocRecord,
    ThresholdRecord,
)
from crossgraft.records.audit import AuditCell as AuditCell
from crossgraft.records.audit import AuditDifference as AuditDifference
from crossgraft.records.audit import AuditDifferencePoint as AuditDifferencePoint
from crossgraft.records.audit import AuditEntry as AuditEntry
from crossgraft.records.audit import AuditMetric as AuditMetric
from crossgraft.records.audit import AuditMode as AuditMode
from crossgraft.records.audit import AuditOutcome as AuditOutcome
from crossgraft.records.audit import AuditPoint as AuditPoint
from crossgraft.records.audit import AuditRecord as AuditRecord
from crossgraft.records.audit import AuditTrainingRecord as AuditTrainingRecord
from crossgraft.records.audit import ConfounderRecord as ConfounderRecord
from crossgraft.records.audit import FileFactRow as FileFactRow
from crossgraft.records.audit import GateRecord as GateRecord
from crossgraft.records.audit_frequency import ArtefactFrequencies as ArtefactFrequencies
from crossgraft.records.audit_frequency import AuditFrequencies as AuditFrequencies
from crossgraft.records.audit_frequency import BandPoint as BandPoint
from crossgraft.records.audit_frequency import BandRecord as BandRecord
from crossgraft.records.audit_frequency import ModelFrequencies as ModelFrequencies
from crossgraft.records.audit_frequency import PriorityRecord as PriorityRecord
from crossgraft.records.audit_frequency import RiskPoint as RiskPoint
from crossgraft.records.audit_frequency import RiskRankRecord as RiskRankRecord
from crossgraft.records.base import SCHEMA_VERSION, CheckRecord, Record, Reference, Severity, StageRecord, Thumbnail
from crossgraft.records.checks import ColumnRecord, DataCheckRecord, FindingRecord, SplitDifferenceRecord
from crossgraft.records.contact_sheets import ContactSheetRow as ContactSheetRow
from crossgraft.records.contact_sheets import ContactSheetsRecord as ContactSheetsRecord
from crossgraft.records.contact_sheets import ShownImageRow as ShownImageRow
from crossgraft.records.data import DatasetRecord, FileCountRecord, SplitRow
from crossgraft.records.data_split import DataSplitRecord
from crossgraft.records.demo import (
    BestModelRecord,
    ComparedModelRecord,
    DemoPrediction,
    DemoRecord,
    FineTunedRow,
    SplitComparison,
)
from crossgraft.records.distillation import DistillationRecord as DistillationRecord
from crossgraft.records.distillation import DistilledDomainRecord as DistilledDomainRecord
from crossgraft.records.distillation import DistilledStepsRecord as DistilledStepsRecord
from crossgraft.records.editing import EditedClassRow as EditedClassRow
from crossgraft.records.editing import EditedImagesRecord as EditedImagesRecord
from crossgraft.records.editing import EditedPartRow as EditedPartRow
from crossgraft.records.editing import EditRecord as EditRecord
from crossgraft.records.editing import EditRow as EditRow
from crossgraft.records.epochs import EpochRow
from crossgraft.records.export import ExportedFileRecord, ExportedModelRecord, ExportRecord, OutputAgreementRecord
from crossgraft.records.fewshot import BoundRecord as BoundRecord
from crossgraft.records.fewshot import EpisodeLookRecord as EpisodeLookRecord
from crossgraft.records.fewshot import EpisodesPart as EpisodesPart
from crossgraft.records.fewshot import FewshotRecord as FewshotRecord
from crossgraft.records.fewshot import HeadLookRecord as HeadLookRecord
from crossgraft.records.fewshot import HeadRow as HeadRow
from crossgraft.records.fewshot import SizeRow as SizeRow
from crossgraft.records.geometry import CentreTaskRow as CentreTaskRow
from crossgraft.records.geometry import DistanceRow as DistanceRow
from crossgraft.records.geometry import ForgettingRecord as ForgettingRecord
from crossgraft.records.geometry import InterpolationPathRecord as InterpolationPathRecord
from crossgraft.records.geometry import ParameterDistanceRecord as ParameterDistanceRecord
from crossgraft.records.geometry import PathPointRow as PathPointRow
from crossgraft.records.geometry import ProbeRow as ProbeRow
from crossgraft.records.geometry import SharpnessRecord as SharpnessRecord
from crossgraft.records.geometry import SharpnessRow as SharpnessRow
from crossgraft.records.geometry import WeightDistance as WeightDistance
from crossgraft.records.geometry_maps import AttentionRecord as AttentionRecord
from crossgraft.records.geometry_maps import AttentionRow as AttentionRow
from crossgraft.records.geometry_maps import FeatureMapRecord as FeatureMapRecord
from crossgraft.records.geometry_maps import FilterRow as FilterRow
from crossgraft.records.geometry_maps import FiltersRecord as FiltersRecord
from crossgraft.records.geometry_maps import MappedNetworkRow as MappedNetworkRow
from crossgraft.records.geometry_maps import TsneRecord as TsneRecord
from crossgraft.records.geometry_maps import TsneRow as TsneRow
from crossgraft.records.gradients import BlockGradientRecord, GradientNormsRecord
from crossgraft.records.interpolation import InterpolationPoint, InterpolationRecord
from crossgraft.records.keeping import BatchNormRecord, KeepRecord
from crossgraft.records.layer_pca import LayerPcaPanel, LayerPcaRecord
from crossgraft.records.looks import Look, LooksRecord
from crossgraft.records.mistakes import MistakeRecord as MistakeRecord
from crossgraft.records.mistakes import MistakesRecord as MistakesRecord
from crossgraft.records.model_comparison import ComparedKind as ComparedKind
from crossgraft.records.model_comparison import ComparedModel as ComparedModel
from crossgraft.records.model_comparison import LayerCca as LayerCca
from crossgraft.records.model_comparison import LayerGrid as LayerGrid
from crossgraft.records.model_comparison import MeasuredFeatures as MeasuredFeatures
from crossgraft.records.model_comparison import ModelComparisonRecord as ModelComparisonRecord
from crossgraft.records.model_comparison import ModelPair as ModelPair
from crossgraft.records.model_comparison import PairOf as PairOf
from crossgraft.records.model_comparison import SharedMistakes as SharedMistakes
from crossgraft.records.model_comparison_geometry import GeometryName as GeometryName
from crossgraft.records.model_comparison_geometry import ModelGeometry as ModelGeometry
from crossgraft.records.model_comparison_geometry import WeightsApart as WeightsApart
from crossgraft.records.models import ModelRecord, PreprocessingRecord, Role
from crossgraft.records.plugins import PluginRecord
from crossgraft.records.prediction import PredictionRecord, PredictionRow
from crossgraft.records.prior import STATIC_PRIOR, KnownResult, PriorRecord, PriorRow
from crossgraft.records.published import (
    AnswerRecord,
    CitedTable,
    FriedmanRecord,
    MeanRecord,
    MethodRecord,
    ReproductionRecord,
    ScenarioRecord,
    SlipRecord,
)
from crossgraft.records.published_again import PublishedRecord
from crossgraft.records.ranking import (
    AgreementRecord,
    GroundTruthRecord,
    PairRecord,
    RankingByScore,
    RankingRecord,
    RankRow,
    ScoreCell,
    ScoreRecord,
)
from crossgraft.records.replay import OrderRow, ReplayRecord, ReplayRow
from crossgraft.records.runs import RunRecord
from crossgraft.records.saved_model import SavedModelRecord, TrainingDataRecord
from crossgraft.records.selection import CandidateRecord, PlannedModel, SelectionPlanRecord, SelectionRecord
from crossgraft.records.tuning import FoldRecord, GridPointRecord, PlanRecord, PlanRow, TunedModelRecord, TuningRecord
from crossgraft.records.tuning_comparison import (
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
