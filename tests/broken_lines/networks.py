"""Pretrained networks: where they come from, what is computed with them, and what is kept of it."""

MUTATIONS = {
    "unit/models/test_text_towers.py": [
        ("models/sources/transformers_texts.py", "or len(weight) != width:", "or False:"),
        ("models/sources/text_tower.py", "if len(numbers) > self.context_length:", "if False:"),
        ("models/sources/text_tower.py", "stated.numel() == 1 and", "True and"),
        ("models/sources/open_clip_texts.py", "logit_bias=bias,", ""),
    ],
    "unit/models/test_transformers_models.py": [
        (
            "models/sources/transformers_networks.py",
            "tokens[:, 0] if self.has_class_token",
            "tokens[:, 1] if self.has_class_token",
        ),
        ("models/sources/transformers_networks.py", "configuration.mask_ratio = 0.0", "pass"),
        ("models/sources/transformers_images.py", "_LARGEST_VALUE * (float", "256 * (float"),
        ("models/sources/transformers_images.py", "shortest >= _SQUASHED_FROM", "True"),
        ("models/sources/transformers_images.py", "not in _INTERPOLATIONS:", "is None:"),
        ("models/sources/transformers_models.py", "number_of_classes(number, where=where)", "number"),
        ("models/sources/transformers_models.py", 'key.partition(".")[0] in parts', "False"),
        ("models/sources/transformers_models.py", 'said.get("quantization_config") is not None', "False"),
        ("models/sources/transformers_models.py", "any(_POOLER_KEY in key for key in keys())", "True"),
        ("models/layers.py", "isinstance(layer, CONTAINERS) or _is_stage(layer)", "isinstance(layer, CONTAINERS)"),
        ("geometry/attention_map.py", "q.shape[-1] ** -0.5 if scale is None else scale", "1.0"),
    ],
    "unit/models/test_open_clip_models.py": [
        ("models/sources/timm_models.py", '("ln_1.", "norm1.")', '("ln_1.", "norm2.")'),
        ("models/sources/timm_models.py", "tensor.T.contiguous()", "tensor"),
        ("models/sources/open_clip_models.py", '_QUICK if model.get("quick_gelu") else _CLIP', "_CLIP"),
        ("models/sources/open_clip_models.py", "width // head_width", "1"),
        ("models/sources/open_clip_models.py", "prefix = _TRUNK", "prefix = None"),
    ],
    "unit/models/test_multiply_adds.py": [
        ("models/multiply_adds.py", "counter.get_total_flops() // 2", "counter.get_total_flops()"),
        ("models/multiply_adds.py", "torch.random.fork_rng(devices=[]), ", ""),
    ],
    "unit/models/test_places_of_models.py": [
        ("models/sources/hub_description.py", 'if "auto_map" in said:', 'if "auto_mop" in said:'),
        ("models/sources/hub_description.py", "    refuse_other_arguments(arguments", "    print(arguments"),
        ("models/sources/hub_description.py", "> _MOST_BYTES", "> 10 * _MOST_BYTES"),
        ("models/sources/hub_description.py", "kwargs={**arguments, **spec.kwargs}", "kwargs={**spec.kwargs}"),
        (
            "models/sources/described_places.py",
            "revision=self.revision)\n        return Path(found)",
            ")\n        return Path(found)",
        ),
        ("models/sources/described_places.py", "if places.allow_download:", "if True:"),
    ],
    "unit/models/test_wheel_weights.py": [
        ("models/sources/wheel_weights.py", "if found != _wheel(source).sha256:", "if not found:"),
        ("models/sources/wheel_weights.py", "dict(zip(names, read", "dict(zip(reversed(names), read"),
    ],
    "unit/models/test_published_names.py": [
        ("models/zoo.py", ", kwargs=known.arguments)", ")"),
        ("models/zoo.py", "{each.name} {each.trained_on}", "{each.name}"),
    ],
    "unit/models/test_files_by_name.py": [
        ("models/resolve.py", "if len(files) != 1", "if not files"),
        ("models/resolve.py", "(read_header(path).architecture or named)", "named"),
    ],
    "unit/models/adapters/test_lora.py": [("models/adapters/lora.py", "alpha / r, dropout", "alpha, dropout")],
    "unit/geometry/test_sharpness.py": [
        ("geometry/sharpness.py", "shift = [e / too_far for e in shift] if too_far > 1 else shift", "pass"),
        ("geometry/sharpness.py", "already += part / n", "already += part"),
        ("geometry/sharpness.py", "best = max(best, there)", "best = there"),
        ("geometry/sharpness.py", "weight.copy_(before)\n", "weight.add_(0)\n"),
    ],
    "unit/geometry/test_attention_map.py": [
        ("geometry/attention_map.py", "scale is None else scale", "scale is None else 1.0"),
        ("geometry/attention_map.py", "matrix[:, :, self._num_prefix :]", "matrix[:, :, 1:]"),
        ("geometry/attention_map.py", "out.shape != given.shape or", "False and"),
    ],
    "unit/geometry/test_feature_map.py": [
        ("geometry/feature_map.py", "_components(np.concatenate(list(rows.values())))", "_components(home)"),
        ("geometry/feature_map.py", "np.minimum(p / p.sum(), q / q.sum())", "np.minimum(p, q)"),
    ],
    "unit/geometry/test_path_and_probe.py": [
        ("geometry/interpolation_path.py", "features if reference is None else reference", "features"),
        ("geometry/forgetting.py", "scaler.transform(test.astype(np.float64))", "test"),
    ],
    "unit/features/test_passes.py": [
        ("features/passes.py", "                module.eval()\n", "                pass\n"),
        ("features/passes.py", "torch.set_grad_enabled(graph)", "torch.set_grad_enabled(True)"),
        ("features/passes.py", "done += len(part)", "done += loader.batch_size + 1"),
    ],
    "unit/features/test_extract.py unit/features/test_store.py": [
        ("features/store.py", '"preprocessing": asdict(backbone.preprocessing),', "")
    ],
    "unit/features/test_extract.py unit/features/test_store.py security/test_caches.py": [
        ("features/store.py", "== str(checksum(array)) and", "is not None and")
    ],
}
