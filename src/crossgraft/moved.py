"""Names of earlier versions that are elsewhere now. They warn for one release; then their lines go."""

from collections.abc import Mapping

MOVED: Mapping[str, Mapping[str, str]] = {
    "crossgraft.audit.confounders": {
        "crossgraft.edit.confounders": (
            "BiasField CONFOUNDERS ChestTube Collimation Confounder EcgLead Gamma Gibbs IntensityShift Jpeg LowPass "
            "MotionBlur MrMotion NlmDenoising PenMark PoissonImage PoissonProjection Resample Ruler Tag TextAnnotation"
        ),
    },
    "crossgraft.data.checks": {
        "crossgraft": "check_data",
    },
    "crossgraft.export": {
        "crossgraft": "export_model",
    },
    "crossgraft.fewshot": {
        "crossgraft.distil": "DistillationSettings Domain UniversalBackbone distil_domains",
    },
    "crossgraft.fewshot.universal": {
        "crossgraft.distil": "DistillationSettings DistilledStep Domain UniversalBackbone distil_domains",
    },
    "crossgraft.models.adapters": {
        "crossgraft.models.adapted": "add_adapters merged_copy read_peft_adapter write_peft_adapter",
        "crossgraft.models.adapters": "AdaptFormer=AdaptFormerAdapter Lora=LoraAdapter",
    },
    "crossgraft.options": {
        "crossgraft.audit.options": "AuditOptions",
        "crossgraft.check.options": "CheckOptions",
        "crossgraft.cli.options": "ListOptions",
        "crossgraft.compare.options": "CompareModelsOptions",
        "crossgraft.demo.options": "DemoOptions",
        "crossgraft.distil": "DistillationSettings",
        "crossgraft.distil.options": "DistilOptions",
        "crossgraft.edit.options": "EditOptions SheetOptions",
        "crossgraft.export.options": "ExportOptions",
        "crossgraft.fewshot.options": "FewshotOptions SupportOptions",
        "crossgraft.interpolate.options": "InterpolateOptions",
        "crossgraft.options.terminal": "ReportOptions",
        "crossgraft.predict.options": "PredictOptions",
        "crossgraft.rank.options": "Published PublishedOptions RankOptions",
        "crossgraft.select.options": "Replay ReplayOptions SelectOptions",
        "crossgraft.split.options": "SplitOptions",
        "crossgraft.tune.options": "CompareOptions FitOptions TuneOptions VariantOptions",
    },
    "crossgraft.rank": {
        "crossgraft": "evaluate_published rank_models",
    },
    "crossgraft.rank.published": {
        "crossgraft.rank.published": "Column=ScoreColumn",
    },
    "crossgraft.records": {
        "crossgraft.audit.frequency_record": (
            "ArtefactFrequencies AuditFrequencies BandPoint BandRecord ModelFrequencies PriorityRecord RiskPoint "
            "RiskRankRecord"
        ),
        "crossgraft.audit.record": (
            "AuditCell AuditDifference AuditDifferencePoint AuditEntry AuditMetric AuditMode AuditOutcome AuditPoint "
            "AuditRecord AuditTrainingRecord ConfounderRecord FileFactRow GateRecord"
        ),
        "crossgraft.compare.geometry_record": "GeometryName ModelGeometry WeightsApart",
        "crossgraft.compare.record": (
            "ComparedKind ComparedModel LayerCca LayerGrid MeasuredFeatures ModelComparisonRecord ModelPair PairOf "
            "SharedMistakes"
        ),
        "crossgraft.data.checks.record": "ColumnRecord DataCheckRecord FindingRecord SplitDifferenceRecord",
        "crossgraft.data.record": "DatasetRecord FileCountRecord SplitRow",
        "crossgraft.data.split_record": "DataSplitRecord",
        "crossgraft.demo.record": "BestModelRecord ComparedModelRecord DemoPrediction DemoRecord FineTunedRow SplitComparison",
        "crossgraft.distil.record": "DistillationRecord DistilledDomainRecord DistilledStepsRecord",
        "crossgraft.edit.contact_sheets_record": "ContactSheetRow ContactSheetsRecord ShownImageRow",
        "crossgraft.edit.record": "EditRecord EditRow EditedClassRow EditedImagesRecord EditedPartRow",
        "crossgraft.export.record": "ExportRecord ExportedFileRecord ExportedModelRecord OutputAgreementRecord",
        "crossgraft.fewshot.record": "BoundRecord EpisodeLookRecord EpisodesPart FewshotRecord HeadLookRecord HeadRow SizeRow",
        "crossgraft.geometry.maps_record": (
            "AttentionRecord AttentionRow FeatureMapRecord FilterRow FiltersRecord MappedNetworkRow TsneRecord TsneRow"
        ),
        "crossgraft.geometry.record": (
            "CentreTaskRow DistanceRow ForgettingRecord InterpolationPathRecord ParameterDistanceRecord PathPointRow ProbeRow "
            "SharpnessRecord SharpnessRow WeightDistance"
        ),
        "crossgraft.interpolate.record": "InterpolationPoint InterpolationRecord",
        "crossgraft.metrics.record": "CalibrationRecord ConfusionRecord MetricRecord ReliabilityBin RocRecord ThresholdRecord",
        "crossgraft.models.record": "ModelRecord PreprocessingRecord Role",
        "crossgraft.published.record": "PublishedRecord",
        "crossgraft.rank.known_record": "KnownResult PriorRecord PriorRow STATIC_PRIOR",
        "crossgraft.rank.published.record": (
            "AnswerRecord CitedTable FriedmanRecord MeanRecord MethodRecord ReproductionRecord ScenarioRecord SlipRecord"
        ),
        "crossgraft.rank.record": (
            "AgreementRecord GroundTruthRecord PairRecord RankRow RankingByScore RankingRecord ScoreCell ScoreRecord"
        ),
        "crossgraft.records.looks": "Look LooksRecord",
        "crossgraft.records.runs": "RunRecord",
        "crossgraft.select.record": "CandidateRecord PlannedModel SelectionPlanRecord SelectionRecord",
        "crossgraft.select.replay.record": "OrderRow ReplayRecord ReplayRow",
        "crossgraft.tune.epochs_record": "EpochRow",
        "crossgraft.tune.gradients_record": "BlockGradientRecord GradientNormsRecord",
        "crossgraft.tune.keeping_record": "BatchNormRecord KeepRecord",
        "crossgraft.tune.mistakes_record": "MistakeRecord MistakesRecord",
        "crossgraft.tune.plugins_record": "PluginRecord",
        "crossgraft.tune.prediction_record": "PredictionRecord PredictionRow",
        "crossgraft.tune.record": "FoldRecord GridPointRecord PlanRecord PlanRow TunedModelRecord TuningRecord",
        "crossgraft.tune.saving.record": "SavedModelRecord TrainingDataRecord",
        "crossgraft.variants.layer_pca_record": "LayerPcaPanel LayerPcaRecord",
        "crossgraft.variants.record": (
            "ComparedPlan ComparedTrainingRecord ComparedVariantRecord ComparisonPlanRecord DifferenceRecord "
            "FineTuningComparisonRecord ValueRecord"
        ),
    },
    "crossgraft.replay": {
        "crossgraft.select.replay": "ReplayResult known_rows replay replay_published",
    },
    "crossgraft.report": {
        "crossgraft": "write_report",
    },
    "crossgraft.report.sections": {
        "crossgraft.report.kinds": "KINDS",
    },
    "crossgraft.runs": {
        "crossgraft.rank.results_file": "add_known_results known_results_file read_known_results",
        "crossgraft.running": "Publish RunDirectory open_command_run open_run write_atomically",
    },
    "crossgraft.selection": {
        "crossgraft.select": "Budget Candidate Selected Trial parse_budget run_selection",
    },
    "crossgraft.tune": {
        "crossgraft": "compare_fine_tunings export_model fine_tune interpolate_runs predict",
        "crossgraft.export": "Exported",
        "crossgraft.interpolate": "Interpolated",
        "crossgraft.tune": "Tuned=FineTuningResult",
        "crossgraft.variants": "FineTuningComparison Variant",
    },
    "crossgraft.tune.comparing": {
        "crossgraft.variants": "FineTuningComparison Variant",
    },
    "crossgraft.tune.exporting": {
        "crossgraft.export": "Exported",
    },
    "crossgraft.tune.variants": {
        "crossgraft.variants": "FineTuningComparison Variant",
    },
    "crossgraft.verbs": {
        "crossgraft.running": "Run verb",
    },
    "crossgraft.verbs.publish": {
        "crossgraft.running": "publish",
    },
}
"""Earlier package → module of today → names; ``old=new`` where a name is another."""
