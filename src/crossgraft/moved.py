"""Names of earlier versions that are elsewhere now. They warn for one release; then their lines go."""

from collections.abc import Mapping

MOVED: Mapping[str, Mapping[str, str]] = {
    "crossgraft.audit.confounders": {
        "crossgraft.edit.confounders": (
            "BiasField CONFOUNDERS ChestTube Collimation Confounder EcgLead Gamma Gibbs IntensityShift Jpeg LowPass "
            "MotionBlur MrMotion NlmDenoising PenMark PoissonImage PoissonProjection Resample Ruler Tag TextAnnotation"
        )
    },
    "crossgraft.data.checks": {"crossgraft": "check_data"},
    "crossgraft.export": {"crossgraft": "export_model"},
    "crossgraft.fewshot": {"crossgraft.distil": "DistillationSettings Domain UniversalBackbone distil_domains"},
    "crossgraft.fewshot.prompts": {"crossgraft.fewshot": "class_weights_from_prompts"},
    "crossgraft.fewshot.universal": {
        "crossgraft.distil": "DistillationSettings DistilledStep Domain UniversalBackbone distil_domains"
    },
    "crossgraft.models.adapters": {
        "crossgraft.models.adapted": "add_adapters merged_copy read_peft_adapter write_peft_adapter",
        "crossgraft.models.adapters": "AdaptFormer=AdaptFormerAdapter Lora=LoraAdapter",
    },
    "crossgraft.models.adapters.registry": {"crossgraft.models.adapters": "ADAPTERS"},
    "crossgraft.models.available": {"crossgraft.models": "list_available_models"},
    "crossgraft.models.load_texts": {"crossgraft.models": "load_text_tower"},
    "crossgraft.options": {
        "crossgraft.audit.options": "AuditOptions",
        "crossgraft.check.options": "CheckOptions",
        "crossgraft.cli.list_options": "ListOptions",
        "crossgraft.compare.options": "CompareModelsOptions",
        "crossgraft.demo.options": "DemoOptions",
        "crossgraft.distil": "DistillationSettings",
        "crossgraft.distil.options": "DistilOptions",
        "crossgraft.edit.options": "EditOptions SheetOptions",
        "crossgraft.export.options": "ExportOptions",
        "crossgraft.fewshot.options": "FewshotOptions SupportOptions",
        "crossgraft.interpolate.options": "InterpolateOptions",
        "crossgraft.options.running": "ReportOptions",
        "crossgraft.predict.options": "PredictOptions",
        "crossgraft.rank.options": "Published PublishedOptions RankOptions",
        "crossgraft.select.options": "Replay ReplayOptions SelectOptions",
        "crossgraft.split.options": "SplitOptions",
        "crossgraft.tune.options": "CompareOptions FitOptions TuneOptions VariantOptions",
    },
    "crossgraft.rank": {"crossgraft": "evaluate_published rank_models"},
    "crossgraft.rank.published": {"crossgraft.rank.published": "Column=ScoreColumn"},
    "crossgraft.records": {
        "crossgraft.audit.record": (
            "ArtefactFrequencies AuditCell AuditDifference AuditDifferencePoint AuditEntry AuditFrequencies AuditMetric "
            "AuditMode AuditOutcome AuditPoint AuditRecord AuditTrainingRecord BandPoint BandRecord ConfounderRecord "
            "FileFactRow GateRecord ModelFrequencies PriorityRecord RiskPoint RiskRankRecord"
        ),
        "crossgraft.compare.record": (
            "ComparedKind ComparedModel GeometryName LayerCca LayerGrid MeasuredFeatures ModelComparisonRecord ModelGeometry "
            "ModelPair PairOf SharedMistakes WeightsApart"
        ),
        "crossgraft.data.checks.record": "ColumnRecord DataCheckRecord FindingRecord SplitDifferenceRecord",
        "crossgraft.data.record": "DataSplitRecord DatasetRecord FileCountRecord SplitRow",
        "crossgraft.demo.record": "BestModelRecord ComparedModelRecord DemoPrediction DemoRecord FineTunedRow SplitComparison",
        "crossgraft.distil.record": "DistillationRecord DistilledDomainRecord DistilledStepsRecord",
        "crossgraft.edit.record": (
            "ContactSheetRow ContactSheetsRecord EditRecord EditRow EditedClassRow EditedImagesRecord EditedPartRow ShownImageRow"
        ),
        "crossgraft.export.record": "ExportRecord ExportedFileRecord ExportedModelRecord OutputAgreementRecord",
        "crossgraft.fewshot.record": "BoundRecord EpisodeLookRecord EpisodesPart FewshotRecord HeadLookRecord HeadRow SizeRow",
        "crossgraft.geometry.record": (
            "AttentionRecord AttentionRow FeatureMapRecord FilterRow FiltersRecord ForgettingRecord "
            "InterpolationPathRecord MappedNetworkRow PathPointRow ProbeRow SharpnessRecord "
            "SharpnessRow TsneRecord TsneRow WeightDistance"
        ),
        "crossgraft.interpolate.record": "InterpolationPoint InterpolationRecord",
        "crossgraft.metrics.record": "CalibrationRecord ConfusionRecord MetricRecord ReliabilityBin RocRecord ThresholdRecord",
        "crossgraft.models.record": "ModelRecord PreprocessingRecord Role",
        "crossgraft.published.record": "PublishedRecord",
        "crossgraft.rank.published.record": (
            "AnswerRecord CitedTable FriedmanRecord MeanRecord MethodRecord ReproductionRecord ScenarioRecord SlipRecord"
        ),
        "crossgraft.rank.record": (
            "AgreementRecord GroundTruthRecord KnownResult PairRecord PriorRecord PriorRow RankRow RankingByScore "
            "RankingRecord STATIC_PRIOR ScoreCell ScoreRecord"
        ),
        "crossgraft.records.base": "Look LooksRecord RunRecord",
        "crossgraft.select.record": "CandidateRecord PlannedModel SelectionPlanRecord SelectionRecord",
        "crossgraft.select.replay.record": "OrderRow ReplayRecord ReplayRow",
        "crossgraft.tune.record": (
            "BatchNormRecord BlockGradientRecord EpochRow FoldRecord GradientNormsRecord GridPointRecord KeepRecord "
            "MistakeRecord MistakesRecord PlanRecord PlanRow PluginRecord PredictionRecord PredictionRow TunedModelRecord "
            "TuningRecord"
        ),
        "crossgraft.tune.saving.record": "SavedModelRecord TrainingDataRecord",
        "crossgraft.variants.record": (
            "ComparedPlan ComparedTrainingRecord ComparedVariantRecord ComparisonPlanRecord DifferenceRecord "
            "FineTuningComparisonRecord LayerPcaPanel LayerPcaRecord ValueRecord"
        ),
    },
    "crossgraft.replay": {"crossgraft.select.replay": "ReplayResult known_rows replay replay_published"},
    "crossgraft.report": {"crossgraft": "write_report"},
    "crossgraft.report.sections": {"crossgraft.report.kinds": "KINDS"},
    "crossgraft.runs": {
        "crossgraft.rank.results_store": "add_known_results known_results_file read_known_results",
        "crossgraft.running": "Publish RunDirectory open_command_run open_run write_atomically",
    },
    "crossgraft.selection": {"crossgraft.select": "Budget Candidate Selected Trial parse_budget run_selection"},
    "crossgraft.tune": {
        "crossgraft": "compare_fine_tunings export_model fine_tune interpolate_runs predict",
        "crossgraft.export": "Exported",
        "crossgraft.interpolate": "Interpolated",
        "crossgraft.tune": "Tuned=FineTuningResult",
        "crossgraft.variants": "FineTuningComparison Variant",
    },
    "crossgraft.tune.comparing": {"crossgraft.variants": "FineTuningComparison Variant"},
    "crossgraft.tune.exporting": {"crossgraft.export": "Exported"},
    "crossgraft.tune.feature_transform": {"crossgraft.tune.protocols": "FeatureTransform TransformStart"},
    "crossgraft.tune.objective": {"crossgraft.tune.protocols": "Objective ObjectiveContext"},
    "crossgraft.tune.variants": {"crossgraft.variants": "FineTuningComparison Variant"},
    "crossgraft.verbs": {"crossgraft.running": "Run verb"},
    "crossgraft.verbs.publish": {"crossgraft.running": "publish"},
}
"""Earlier package → module of today → names; ``old=new`` where a name is another."""
