"""What a file may ask for that describes a network: arguments that shape it, numbers that networks have, the memory there is.

The constructors of both libraries also take arguments that load weights, go to the network or open a pickle (``pretrained``,
``pretrained_cfg``, ``checkpoint_path`` …). The header of a checkpoint, a zoo file and a saved model are data, so none of
these is passed on, whatever a newer version of the libraries calls them: what is not listed here is refused by name. And a few
numbers in a header must not fill the memory of a machine.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import cast

from torch import Tensor, nn
from torch.nn.modules import module as torch_modules

from crossgraft.compute import available_memory, rounded_size
from crossgraft.errors import OutOfMemoryError, UnknownNameError, UsageError
from crossgraft.paths import shortened

_INPUT_AND_HEAD = """
    num_classes in_chans img_size image_size global_pool pool_size pool_type class_token distilled no_embed_class
    reg_tokens num_reg_tokens fc_norm use_fc_norm final_norm norm_layer_cl head_bias head_norm head_norm_first
    head_hidden_size head_init_scale head_widths num_features feature_dim encoder_pool use_mlp_head
    pool_include_prefix attn_pool_num_heads attn_pool_mlp_ratio aux_logits use_aux_head transform_input init_weights
    with_fc use_expand_proj dynamic_img_size dynamic_img_pad strict_img_size always_partition default_img_size
"""
_DROPPING = """
    drop_rate drop_path_rate drop_block_rate drop_block_size proj_drop_rate attn_drop_rate pos_drop_rate
    patch_drop_rate transformer_drop_path drop dropout attention_dropout stochastic_depth_prob dropout_rate
    drop_connect_rate
"""
_SIZES = """
    depth depths depth_list layers num_layers num_blocks num_blocks_list block_args block_config block_cfg block_type
    stages channels dims dim base_dim base_dims inner_dim hidden_dim hidden_sizes hidden_size intermediate_size
    embed_dim embed_dims patch_size patch_sizes patch_kernel patch_stride patch_padding kernel_size kernel_sizes
    kernels stride strides window_size window_sizes window_ratio window_spec num_heads num_kv_heads num_heads_inner
    num_heads_outer heads head_dim head_mul dim_mul key_dim qk_dim partial_dim state_dim mlp_dim mlp_ratio mlp_ratios
    mlp_ratio_token_only expand_ratio expand_ratios expansion_ratio mbconv_expand_ratio attn_ratio ffn_ratio se_ratio
    conv_ratio cls_ratio sr_ratios bottle_ratio bottleneck_width_ratio transition_compression_ratio growth_rate
    growth_rates bn_size num_init_features init_channels initial_chs final_chs inplanes reduction cardinality
    base_width width_per_group groups group group_size expand_groups width widths width_list width_factor width_mult
    depth_mult channel_multiplier depth_multiplier deepen_factor widen_factor ch_div round_limit scale
    local_up_to_layer locality_strength serial_depths parallel_depth depth_token_only transformer_depths crpe_window
    img_scale crop_scale levels num_levels focal_levels focal_windows num_vit ssd_expand n_div mask_unit_size q_pool
    q_stride global_att_blocks global_attn_indexes global_pos_size neck_chans output_stride post_layers
    stem_hidden_dim stem_width stem_size stem_chs stem_kernel_size stem_stride stem_expand_ratio
    downsample_expand_ratios attn_mlp_ratio local_conv_size merge_size downsample_ratio pooling_kernel_size
    pooling_scale mix_block_ratio num_rnn_layers cls_attn_layers k_sec inc_sec k_r b first_stride d2_scales
    global_block_counts
"""
_BUILDING_BLOCKS = """
    norm_layer norm_layers norm_eps act_layer aa_layer se_layer conv_layer embed_layer mlp_layer block_layer
    attn_layer embed_norm_layer stem_norm patch_norm pre_norm qk_norm embed_norm tokens_norm norm_pre weight_init
    conv_init fix_init fix_stem fix_first_last pad_type padding bn_eps bn_momentum bn_tf bias qkv_bias proj_bias
    conv_bias stem_bias mlp_bias qkv_fused swiglu_mlp scale_mlp scale_mlp_norm scale_attn_norm scale_attn_inner
    layer_scale layer_scale_init_value layer_scale_init_values layerscale_value ls_init_value init_values init_value
    res_scale_init_values zero_init_last zero_init_residual pos_embed use_pos_embed use_pos_emb use_abs_pos
    use_abs_pos_emb use_rel_pos use_rope use_rot_pos_emb use_rel_pos_bias use_shared_rel_pos_bias shared_rel_pos
    rel_pos_type rel_pos_dim rope_type rope_temperature rope_theta pos_embed_grid_size ref_feat_shape
    pretrained_window_sizes extra_norm_period extra_norm_stage sequential_attn use_post_norm
    use_post_norm_in_modulation use_overlap_down normalize_modulator use_conv use_grn conv_mlp stem_type stem_conv
    stem_use_scale_branch stem_mid_norm vit_stem spatial_conv attn_stage attn_type attn_types ffn cpe_act
    channel_attn_v2 channel_attention named_blocks token_mixers pos_embs repmixer_kernel_size lkc_use_act
    se_downsamples se_from_exp down_kernel_size down_patch_size down_stride down_pad downsamples avg_down
    replace_stem_pool block_reduce_first preact shortcut_root small basic linear eta outlook_attention use_mix_token
    use_layer_scale version legacy union bidirectional input_3x3 downsample_kernel_size downsample_padding
    is_downsample_block types wss v2 memory_efficient aa_stem_only reparam inference_mode mask_unit_attn sep_pos_embed
    abs_win_pos_embed use_lab use_msfa multi_conv nlhb replace_stride_with_dilation
"""

ARCHITECTURE_ARGUMENTS = frozenset(f"{_INPUT_AND_HEAD} {_DROPPING} {_SIZES} {_BUILDING_BLOCKS}".split())
"""Names of arguments that shape a network and do nothing else."""

_LOADING_ARGUMENTS = (
    *("pretrained", "pretrained_cfg", "pretrained_cfg_overlay", "pretrained_strict", "pretrained_filter_fn"),
    *("pretrained_model_args", "checkpoint_path", "cache_dir", "weights", "weights_backbone", "url", "file"),
)

WRONG_VALUES = (
    *(TypeError, ValueError, LookupError, AttributeError, AssertionError, ArithmeticError),
    *(RuntimeError, MemoryError),
)
"""What constructors raise for values of a file that they cannot use."""


def refuse_other_arguments(names: Iterable[str], *, where: str) -> None:
    """Let only arguments pass that shape a network.

    Args:
        names: Names of the arguments.
        where: Place of the arguments, for the message.

    Raises:
        UsageError: One of them would load weights.
        UnknownNameError: One of them is not on the list.
    """
    refuse_loading_arguments(names, where=where)
    for name in names:
        if name not in ARCHITECTURE_ARGUMENTS:
            raise UnknownNameError(
                f"argument in {where}",
                name,
                ARCHITECTURE_ARGUMENTS,
                hint="Only arguments that shape the network are passed on. For another one, write a function that builds the "
                "network and give it as source: package.module:factory.",
            )


def refuse_loading_arguments(names: Iterable[str], *, where: str) -> None:
    """Refuse arguments by which the libraries load weights, from the network or from a pickle.

    Raises:
        UsageError: The message names the argument.
    """
    for name in names:
        if name in _LOADING_ARGUMENTS:
            raise UsageError(
                f"The argument {name} in {where} would load weights past every check. Remove it; the file of weights is "
                "named by weights in a zoo file."
            )


_MOST_ITEMS = 64


def refuse_nested_values(key: str, value: object, *, where: str) -> None:
    """Values are numbers, words, short lists of them, or one mapping to them.

    Raises:
        UsageError: This one is not; ``where`` says in which file.
    """
    items: Iterable[object] = (value,)
    if isinstance(value, list | tuple):
        items = cast("Sequence[object]", value)
    elif isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value).values()
    items = list(items)
    if len(items) > _MOST_ITEMS or not all(item is None or isinstance(item, str | int | float) for item in items):
        raise UsageError(f"{key} in {where} is no number, word or short list of them. Correct it.")


MOST_TENSORS = 100_000
"""Parameters and buffers of one network; the largest of timm have fewer than 5,000."""
MOST_VALUE = 1_000_000
"""The largest number among the arguments of an architecture: classes, pixels, channels, layers."""


def refuse_large_numbers(values: object, *, where: str) -> None:
    """Look for numbers that no architecture has, also inside lists and mappings.

    Raises:
        UsageError: There is one; constructors would count up to it, or allocate that much, before they fail.
    """
    if isinstance(values, dict):
        values = list(values.values())
    if isinstance(values, list | tuple):
        for value in values:
            refuse_large_numbers(value, where=where)
    elif isinstance(values, int | float) and abs(values) > MOST_VALUE:
        raise UsageError(
            f"A number in {where} is {shortened(repr(values))}; no architecture has one above {MOST_VALUE:,}. Correct it."
        )


@contextmanager
def building_limits(name: str) -> Generator[None]:
    """Count the tensors that modules register inside the block, before they are filled with values.

    Args:
        name: Name of the network, for the message.

    Raises:
        OutOfMemoryError: They need more memory than is available.
        UsageError: They are too many.
    """
    free, thread = available_memory(), threading.get_ident()
    num_bytes = num_tensors = 0

    def count(_module: nn.Module, _name: str, tensor: Tensor | None) -> None:
        nonlocal num_bytes, num_tensors
        if tensor is None or threading.get_ident() != thread:
            return
        num_bytes += tensor.numel() * tensor.element_size()
        num_tensors += 1
        if num_bytes > free:
            raise OutOfMemoryError(
                f"The network {name} needs more than {rounded_size(num_bytes)} of memory, but only {rounded_size(free)} is "
                "available. Check its kwargs."
            )
        if num_tensors > MOST_TENSORS:
            raise UsageError(f"The network {name} has more than {MOST_TENSORS:,} tensors. Check its kwargs.")

    hooks = [
        torch_modules.register_module_parameter_registration_hook(count),
        torch_modules.register_module_buffer_registration_hook(count),
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
