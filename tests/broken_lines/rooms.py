"""What a person asks for and reads: verbs, their pages, verdicts and records."""

MUTATIONS = {
    "unit/metrics/test_harms.py": [
        ("report/verdict.py", "key=lambda note: note.gravity)", "key=lambda note: 0)"),
        ("metrics/harms.py", "level = LEVEL / (2 * len(entries))", "level = LEVEL"),
        ("metrics/harms.py", "return high < 1 - missed / images and", "return"),
        ("metrics/harms.py", "if high < MOST_FOUND and", "if False and"),
        ("metrics/harms.py", "by_chance <= level and _is_below_by_patients(entry, others)", "by_chance <= level"),
        ("metrics/harms.py", "max(n * mean * (1 - mean), grouped)", "n * mean * (1 - mean)"),
        ("metrics/harms.py", "bdtrc(entry.missed - 1,", "bdtrc(entry.missed,"),
        ("metrics/harms.py", "range(lowest, highest + 1)", "range(lowest + 1, highest + 1)"),
        ("metrics/harms.py", "2 * for_what[1] > worst.missed", "for_what[1]"),
        ("metrics/harms.py", "error <= by_chance + STANDARD_ERRORS * standard_error", "error <= by_chance"),
    ],
    "unit/select/test_select_model.py": [
        ("select/training.py", "with limit_threads(work.prepared.num_threads), reuse", "with reuse"),
        ("select/verb.py", "run.reporter.say(_left_for_trainings(plan))", "pass"),
    ],
    "unit/demo/test_story.py": [("demo/story_page.py", '_figure(record.selection, "The', '_figure(record.ranking, "The')],
    "unit/test_faces.py": [("faces.py", 'message="IProgress not found"', 'message="old"')],
    "unit/variants/test_variants.py": [("variants/variant.py", "shlex.quote(choice)", "choice")],
    "unit/predict/test_page.py": [
        ("predict/page.py", "_perhaps_seen, _may_be_guessing,", "_perhaps_seen,"),
        ("predict/page.py", 'f"{name}: {count(number)}', 'f"{name} {count(number)}'),
        ("metrics/words.py", "if row.high is not None and row.high < guess:", "if False:"),
    ],
    "unit/predict/test_dicom_sr.py": [
        ("predict/dicom_sr.py", "str(header.PatientID)), [])", '""), [])'),
        ("predict/dicom_sr.py", "if uid in named:", "if False:"),
        ("predict/dicom_sr.py", "specific_character_set=_UNICODE,", ""),
        ("predict/dicom_sr.py", r'.replace("\\", "/")', ""),
    ],
    "unit/report/test_checklists.py": [("report/checklists/checklist.py", r"[\\`*<&|\[\]]", r"[|]")],
    "unit/report/test_reading.py": [
        ("report/page.py", "_new(value, said) or _ABOVE) for", "_new(value, said)) for"),
        ("report/page.py", "if sentence.casefold() not in said:", "if True:"),
    ],
    "unit/report/test_explorer.py": [
        ("report/explorer.py", "counted == sum(map(sum, crossed.counts))", "True"),
        ("report/explorer.py", "-certainty if is_wrong else certainty", "certainty"),
    ],
    "unit/fewshot/test_averages.py": [
        ("fewshot/averages.py", "mean > half", "mean > 0"),
        ("fewshot/averages.py", "values[seen], values[~seen]", "values[~seen], values[seen]"),
        ("fewshot/averages.py", "float(np.linalg.norm(known)) / len(rows)", "float(np.mean(known))"),
    ],
    "unit/fewshot/test_gaps.py": [("fewshot/look.py", "prototypes[classes].mean(axis=0)", "prototypes.mean(axis=0)")],
    "unit/audit/test_confounded.py": [
        ("audit/reach.py", "> _TIMES_AS_MUCH * left", ">= 0"),
        ("audit/reach.py", "while side <= native", "while side < native"),
    ],
    "unit/audit/test_readable.py": [
        ("audit/readable.py", "(-1.0, of_look[other])", "(0.0, of_look[other])"),
        ("audit/readable.py", "min(number, len(part) - number) < LEAST_IMAGES", "number < LEAST_IMAGES"),
        ("audit/words.py", "auc.low is None or auc.low <= 0.5", "auc.low is None"),
    ],
    "unit/variants/test_compare_domains.py": [
        ("variants/domains.py", "counts_seeds = len(by_seed) >= ENOUGH_SEEDS", "counts_seeds = False"),
        ("variants/domains.py", "min(one for one in of_first if one is not None)", "of_first[lowest]"),
        ("variants/study.py", "if each.reason is not None", "if False"),
    ],
    "unit/fewshot/test_prompts.py unit/fewshot/test_prompted_runs.py": [
        ("fewshot/class_weights.py", "if other != name:", "if False:"),
        ("fewshot/class_weights.py", "or head.class_weights is not None:", "or False:"),
        (
            "fewshot/class_weights.py",
            "unit_vectors(tower.encode(every).astype(np.float64))",
            "tower.encode(every).astype(np.float64)",
        ),
        ("fewshot/verb.py", "texts = {} if tower is None else", "texts = {} if True else"),
    ],
    "unit/centre/test_centre.py": [("centre/verb.py", "len(models) < _FEWEST", "len(models) < 1")],
    "unit/variants/test_compare.py": [("variants/study.py", "max(everything - (plans.expected_seconds or 0.0), 0.0)", "0.0")],
    "unit/audit/test_objective_heads.py": [
        ("audit/mitigation/_objective_head.py", "/ (2 * len(features))", "/ len(features)"),
        ("audit/mitigation/_objective_head.py", "copies = objective.fewest_per_group", "copies = 1"),
        ("audit/mitigation/group_dro.py", 'GroupDRO(self.eta, "domains_and_classes")', "GroupDRO(self.eta)"),
    ],
    "unit/variants/test_layer_pca.py": [
        ("variants/layer_pca.py", "< 0, -1.0, 1.0)", "< 0, 1.0, 1.0)"),
        ("variants/layer_pca.py", "    _features(classifier, layer, [black])", "    del black"),
    ],
}
