"""Fine-tuning: what is drawn, minimised, picked, kept and resumed, and what a saved model says."""

MUTATIONS = {
    "unit/tune/planning/test_leave_out_rows.py": [
        ("tune/planning/leave_out.py", "& ~unseen & trained.used", "& unseen & trained.used"),
        ("tune/planning/leave_out.py", "(home == number) & (parts ==", "(parts =="),
        ("tune/planning/leave_out.py", "parts[_whole_groups(dataset, drawn) &", "parts[np.isin(np.arange(len(parts)), drawn) &"),
        ("tune/planning/leave_out.py", "free = trained.used & ~unseen & ~excluded", "free = trained.used & ~unseen"),
        (
            "tune/planning/leave_out.py",
            "domains.index[dataset.members(index)])) == 1",
            "domains.index[dataset.members(index)])) == 0",
        ),
    ],
    "unit/tune/measuring/test_unseen_domains.py": [
        ("tune/measuring/unseen_domains.py", "1 - (1 - CONFIDENCE) / len(known)", "CONFIDENCE"),
        ("tune/measuring/unseen_domains.py", '"high": min(v.high for v in values', '"high": max(v.high for v in values'),
        ("tune/measuring/unseen_domains.py", "(self.seen, self.unseen.times(-1.0))", "(self.seen, self.unseen)"),
        ("metrics/balanced_accuracy.py", "if (sign * here > 0).any():", "if True:"),
    ],
    "unit/tune/test_leave_out.py": [
        ("tune/planning/preparation.py", "rule=choose_rule(options.select_by, val, num_classes),", "rule=self.rule,"),
        ("tune/result.py", "record.unseen_domains.is_oracle:", "False:"),
        ("tune/assemble.py", 'table["domain"] = dataset_domains.of_rows[rows]', 'table["domain"] = dataset_domains.column'),
    ],
    "unit/tune/planning/test_leave_out_rows.py unit/tune/feed/test_batch_plan.py unit/tune/feed/test_batches.py": [
        ("tune/planning/leave_out.py", "of_listed[listed.kept] = names", "of_listed[: len(names)] = names"),
        ("tune/planning/leave_out.py", 'np.where(given == "test", SEEN, given)', "np.where(given == SEEN, SEEN, given)"),
        ("tune/feed/batches.py", 'or not getattr(transform, "mixes_images", False)', "or True"),
        ("tune/feed/batches.py", "torch.cat(drawn, dim=1)", "drawn[0].repeat(1, len(drawn))"),
    ],
    "unit/losses/test_losses.py": [
        ("losses/focal.py", "torch.exp(self.gamma * log_p) * log_not_p", "torch.exp(self.gamma * log_not_p) * log_not_p"),
        ("losses/_loss.py", "len(targets) / targets.shape[1])", "len(targets))"),
    ],
    "unit/tune/regularizers/test_l2_sp.py": [
        ("tune/regularizers/l2_sp.py", "0.5 * torch.stack(norms)", "torch.stack(norms)"),
        ("tune/regularizers/l2_sp.py", "parameter.detach().clone()", "parameter.detach()"),
    ],
    "unit/tune/regularizers/test_procrustes.py": [("tune/regularizers/repsim.py", "features - features.mean(0)", "features")],
    "unit/tune/regularizers/test_covariance.py": [("tune/regularizers/_moment_terms.py", "rows - mean.detach()", "rows")],
    "unit/tune/batch_transforms/test_mixing.py": [
        ("tune/batch_transforms/mixup.py", "targets[partners].lerp_(targets, share)", "targets"),
        ("tune/batch_transforms/cutmix.py", "share = 1 - (bottom", "share = (bottom"),
    ],
    "golden/test_objectives.py": [("tune/objectives/_over_domains.py", "/ counts.clamp(min=1), counts > 0", ", counts > 0")],
    "unit/tune/objectives/test_objectives.py": [
        ("tune/objectives/irm.py", "2 * domains + _place_within(domains, num_domains) % 2", "2 * domains"),
        ("tune/objectives/irm.py", "create_graph=True", "create_graph=False"),
        ("tune/objectives/_over_domains.py", "if step >= self.anneal_steps else", "if step > self.anneal_steps else"),
        ("tune/objectives/vrex.py", "mean_of_present((risks - mean).square(), present)", "risks.var()"),
        ("tune/objectives/group_dro.py", "self._log_weights = (weights + self.eta", "self._log_weights = (weights - self.eta"),
        ("tune/objectives/group_dro.py", "groups = num_classes * groups + context", "groups = groups + context"),
        ("tune/objectives/group_dro.py", "self._log_weights = state[", "state["),
        ("tune/engine/step.py", "self.named.restart()", "pass"),
    ],
    "unit/tune/objectives/test_two_processes.py": [
        ("tune/engine/step.py", "logits = context.of_all_processes(context.logits)", "logits = context.logits"),
        ("tune/protocols.py", "return self.sum_over_processes(whole)", "return whole"),
    ],
    "unit/tune/feature_transforms/test_mixstyle.py": [
        ("tune/feature_transforms/mixstyle.py", "seen.var((2, 3)) +", "seen.var((2, 3), correction=0) +"),
        ("tune/feature_transforms/mixstyle.py", "maps.detach().to(", "maps.to("),
        (
            "tune/feature_transforms/mixstyle.py",
            "halves = torch.arange(num_images - 1, -1, -1)",
            "halves = torch.arange(num_images)",
        ),
        ("tune/feature_transforms/mixstyle.py", "self._hooks.close()", "pass"),
        ("tune/engine/step.py", "transform.after_forward()", "pass"),
    ],
    "unit/tune/feed/test_batch_plan.py": [
        (
            "tune/feed/batches.py",
            "generator=generator) for _ in range(laps)])",
            "generator=torch.Generator()) for _ in range(laps)])",
        ),
        ("tune/feed/batches.py", "torch.cat(drawn, dim=1)", "torch.cat(drawn)"),
    ],
    "unit/tune/feed/test_batches.py": [("tune/feed/batches.py", 'self.seed, *stream, "domain", domain', "self.seed, *stream")],
    "unit/tune/planning/test_domain_rules.py": [
        ("tune/planning/domain_rules.py", "    if strata[smallest] < share:", "    if strata[smallest] + 1 < share:"),
        ("tune/planning/domain_rules.py", "(self.counts > 0).sum(0) == 1", "(self.counts > 0).sum(0) == 0"),
        ("tune/planning/domain_rules.py", "for each in folds)\n    return next", "for each in folds[:1])\n    return next"),
    ],
    "unit/tune/engine/test_schedule.py": [
        ("tune/engine/optimizers.py", "(step + 1) / (", "step / ("),
        ("tune/schedules/step.py", "epoch >= milestone for", "epoch > milestone for"),
    ],
    "unit/tune/test_presets.py": [("tune/presets/sim_cifar.py", "factor=0.2", "factor=0.1")],
    "unit/tune/engine/test_layer_decay.py": [
        ("tune/engine/optimizers.py", "** (deepest - depth)", "** (deepest - depth + 1)"),
        ("tune/engine/optimizers.py", "parameter.ndim > 1 and", ""),
    ],
    "unit/tune/engine/test_selection_rule.py": [("tune/engine/selection_rule.py", "value < best if", "value <= best if")],
    "unit/tune/engine/test_batch_norm.py": [
        ("tune/engine/step.py", "for name in (*_frozen_parts(selection), *selection.eval_mode):", "for name in ():"),
        ("tune/engine/step.py", "if name in kept]\n", "]\n"),
        ("geometry/batch_norm.py", "        layer.momentum = None\n", "        pass\n"),
        ("geometry/batch_norm.py", "layer.num_batches_tracked.clone()", "layer.num_batches_tracked"),
    ],
    "unit/tune/engine/test_keep.py": [
        ("tune/engine/selection_rule.py", "return self.distance(metrics) <= TOLERANCE", "return self.distance(metrics) <= 0"),
        ("tune/engine/phase_run.py", "if is_best or not is_near or", "if is_best or"),
        ("tune/engine/phase_run.py", "(keep is not None and not progress.best_is_near)", "False"),
        ("tune/engine/phase_run.py", "(keep is not None and not progress.best_is_near)", "(not progress.best_is_near)"),
        ("tune/engine/step.py", "keep_factor if keeps_reference(regularizer) else 1.0", "keep_factor"),
        ("tune/engine/step.py", "keep_factor if keeps_start(regularizer, name) else 1.0", "keep_factor"),
        ("tune/regularizers/l2_sp.py", "self.alpha * update.factor", "self.alpha"),
        ("tune/regularizers/l2_sp.py", "else self.beta", "else self.beta * update.factor"),
        ("tune/engine/phase_run.py", "features_are_fixed=True), main", "features_are_fixed=True, keep=job.keep), main"),
    ],
    "unit/tune/test_keep_search.py": [
        ("tune/keep_search.py", "1 - _INSIDE)", "1)"),
        (
            "tune/keep_search.py",
            "_farther(sorted(above, reverse=True), 1 / _STEP, too_much)",
            "_farther(sorted(above), 1 / _STEP, too_much)",
        ),
        ("tune/keep_search.py", "len(tried) >= most or any", "any"),
        ("tune/keep_search.py", "if farther < too_much else", "if True else"),
        ("tune/keep_search.py", "if flat >= _FLAT_STEPS:", "if flat >= 1:"),
        ("tune/keep_search.py", "math.exp(start + share * (end - start))", "math.exp(end + share * (start - end))"),
    ],
    "unit/tune/planning/test_batch_norm.py": [
        ("tune/planning/batch_norm.py", "if keeps_reference(each) and moving]", "if moving]"),
        ("tune/planning/batch_norm.py", "if freezes_batch_norm(each)", "if True"),
        ("tune/planning/batch_norm.py", 'if asked in ("frozen", "adapt") and', 'if asked == "frozen" and'),
        ("tune/planning/batch_norm.py", "if keeps_reference(each) and moving]", "if keeps_reference(each)]"),
    ],
    "unit/tune/planning/test_fold_networks.py": [
        ("tune/planning/fold_networks.py", "if self.adapts and self._statistics else start", "if False else start"),
        ("tune/planning/rows.py", "FoldNetworks(start, pretrained, images,", "FoldNetworks(start, pretrained, val_images,"),
    ],
    "unit/tune/measuring/test_drift.py": [
        ("tune/measuring/drift.py", '"_untouched": (pretrained, adapted)', '"_untouched": (pretrained, tuned)')
    ],
    "unit/tune/engine/test_gradient_norms.py": [
        ("tune/engine/gradient_norms.py", "each / float(scale) for each", "each for each"),
        ("tune/engine/gradient_norms.py", "if name in selection.trained] for block", "] for block"),
        ("tune/engine/gradient_norms.py", "SMOOTHING * weight + counts", "weight + counts"),
        ("tune/engine/phase_run.py", "tensors[_GRADIENTS] = self.gradients.state()", "pass"),
        ("tune/engine/phase_run.py", "self._write_gradient_norms()  #", "#"),
    ],
    "unit/tune/engine/test_step.py": [
        ("tune/engine/step.py", "term_weight=sizes[rank] / total", "term_weight=1.0"),
        ("tune/engine/step.py", "self._clip(found)", "pass"),
    ],
    "unit/tune/engine/test_step.py unit/tune/engine/test_trainer.py": [
        ("tune/engine/step.py", '"step", step, rank)', '"step", rank)')
    ],
    "unit/tune/engine/test_checkpoint.py": [
        ("tune/engine/checkpoint.py", 'metadata["sha256"] != _digest(text, tensors)', "False"),
        ("tune/engine/checkpoint.py", "    if different:", "    if not found:"),
    ],
    "unit/tune/test_jobs.py": [
        ("tune/jobs.py", "record.key != job.key or", ""),
        ("tune/jobs.py", '"keep": prepared.keep.target, ', ""),
        ("tune/jobs.py", "if nearer > 0 or (nearer == 0 and", "if ("),
    ],
    "unit/tune/measuring/test_thresholds.py": [
        ("tune/measuring/thresholds.py", "np.cumsum(positives)[:-1]", "np.cumsum(positives)[1:]")
    ],
    "unit/tune/measuring/test_calibration.py": [("tune/measuring/thresholds.py", "Temperature(1 / root", "Temperature(root")],
    "unit/tune/test_predict.py": [("tune/known_targets.py", "(targets != _UNKNOWN)", "(targets > -9)")],
    "security/test_code_needs_consent.py": [
        ("tune/saving/saved_model.py", "    if changed:", "    if not facts:"),
        ("models/trusted_code.py", "return file.resolve().is_relative_to(self.place.resolve())", "return True"),
        ("models/trusted_code.py", "top in sys.stdlib_module_names or", ""),
    ],
}
