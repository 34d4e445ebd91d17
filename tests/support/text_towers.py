"""Tiny random networks of images and texts, in folders as open_clip and transformers write them, with tokenizers made here."""

import json

import pytest
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

transformers = pytest.importorskip("transformers")
open_clip = pytest.importorskip("open_clip")

SIZE, WIDTH, JOINT, CONTEXT = 32, 32, 12, 12
VISION = {"image_size": SIZE, "layers": 2, "width": WIDTH, "head_width": 16, "patch_size": 8}
TEXT = {"context_length": CONTEXT, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 2}
TRUNK = {"timm_model_name": "test_vit", "timm_model_pretrained": False, "timm_pool": "", "timm_proj": "linear", "image_size": 160}
TOKENS = {"hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
WORDS = (
    "a",
    "photo",
    "image",
    "of",
    "the",
    "an",
    "cat",
    "dog",
    "cell",
    "tumour",
    "normal",
    "colon",
    "mucosa",
    "red",
    "blue",
    "green",
)
BERT = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3}
PREPARE = {"mean": [0.1, 0.2, 0.3], "std": [0.4, 0.5, 0.6], "resize_mode": "squash"}


def loud(network):
    """The same network with weights that are far from zero."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        for name, parameter in network.named_parameters():
            if name not in ("logit_scale", "logit_bias"):
                torch.nn.init.normal_(parameter, std=0.3)
    return network.eval()


def word_tokenizer(special, before, after):
    """A tokenizer of words, by the package tokenizers."""
    known = {**special, **{word: len(special) + place for place, word in enumerate(WORDS)}}
    made = Tokenizer(models.WordLevel(known, unk_token=next(word for word in special if "unk" in word.lower())))
    made.normalizer = normalizers.Lowercase()
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    pair = [(each, special[each]) for each in (before, after) if each]
    made.post_processor = processors.TemplateProcessing(single=" ".join(filter(None, (before, "$A", after))), special_tokens=pair)
    return made


def write_bert_tokenizer(folder):
    folder.mkdir(parents=True, exist_ok=True)
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=word_tokenizer(BERT, "[CLS]", "[SEP]"),
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
    )
    fast.save_pretrained(folder)


def clip_tokenizer():
    """CLIP's own class, with a vocabulary of letters."""
    letters = [*"abcdefghijklmnopqrstuvwxyz"]
    names = [*letters, *(f"{letter}</w>" for letter in letters), "<|startoftext|>", "<|endoftext|>"]
    return transformers.CLIPTokenizer(vocab={name: number for number, name in enumerate(names)}, merges=[])


def write_open_clip(folder, *, vision=VISION, text=TEXT, weights="open_clip_model.safetensors", custom=False, **changes):
    """Both towers by open_clip's own classes; the network comes back."""
    model = {"embed_dim": JOINT, "vision_cfg": vision, "text_cfg": text, **changes}
    with torch.random.fork_rng():
        made = (open_clip.CustomTextCLIP if custom else open_clip.CLIP)(**model)
    loud(made)
    folder.mkdir(parents=True, exist_ok=True)
    said = {"model_cfg": model, "preprocess_cfg": PREPARE}
    (folder / "open_clip_config.json").write_text(json.dumps(said), encoding="utf-8")
    save(made, folder / weights)
    return made


def save(network, file):
    state = {name: tensor.contiguous() for name, tensor in network.state_dict().items()}
    (save_file if file.suffix == ".safetensors" else torch.save)(state, file)


def write_biomedclip(folder, tmp_path):
    """BiomedCLIP's form: a trunk of timm, a BERT with a projection, its tokenizer and configuration beside them."""
    bert = {"vocab_size": len(BERT) + len(WORDS), "max_position_embeddings": CONTEXT, **TOKENS}
    configuration = transformers.BertConfig(**bert)
    home = tmp_path / "bert"
    configuration.save_pretrained(home)
    text = {"hf_model_name": str(home), "hf_model_pretrained": False, "hf_tokenizer_name": str(home), "context_length": CONTEXT}
    text |= {"hf_proj_type": "mlp", "hf_pooler_type": "cls_last_hidden_state_pooler", "vocab_size": bert["vocab_size"]}
    made = write_open_clip(folder, vision=TRUNK, text=text, weights="open_clip_pytorch_model.bin", custom=True)
    said = json.loads((folder / "open_clip_config.json").read_text())
    said["model_cfg"]["text_cfg"] |= {"hf_model_name": "some/bert", "hf_tokenizer_name": "some/bert"}
    (folder / "open_clip_config.json").write_text(json.dumps(said))
    write_bert_tokenizer(folder)
    (folder / "config.json").write_text((home / "config.json").read_text())
    return made


def write_transformers_clip(folder):
    """CLIP of transformers; the network comes back."""
    tokenizer = clip_tokenizer()
    configuration = transformers.CLIPConfig(
        text_config={
            **TOKENS,
            "vocab_size": len(tokenizer),
            "max_position_embeddings": 32,
            "eos_token_id": tokenizer.eos_token_id,
            "bos_token_id": tokenizer.bos_token_id,
            "pad_token_id": tokenizer.pad_token_id,
        },
        vision_config={**TOKENS, "image_size": SIZE, "patch_size": 8},
        projection_dim=JOINT,
    )
    return _write(folder, transformers.CLIPModel, configuration, tokenizer)


def write_transformers_metaclip(folder):
    """MetaCLIP 2 of transformers, with a tokenizer of words; the network comes back."""
    special = {"<pad>": 0, "<unk>": 1, "</s>": 2}
    tokenizer = sentence_tokenizer(special)
    configuration = transformers.MetaClip2Config(
        text_config={
            **TOKENS,
            "vocab_size": len(tokenizer),
            "max_position_embeddings": CONTEXT,
            "eos_token_id": 2,
            "pad_token_id": 0,
        },
        vision_config={**TOKENS, "image_size": SIZE, "patch_size": 8},
        projection_dim=JOINT,
    )
    return _write(folder, transformers.MetaClip2Model, configuration, tokenizer)


def sentence_tokenizer(special):
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=word_tokenizer(special, "", "</s>"),
        pad_token="<pad>",
        unk_token="<unk>",
        eos_token="</s>",
        model_input_names=["input_ids"],
    )


def sentencepiece_tokenizer(folder):
    """SigLIP's own class, as MedSigLIP has it, with a vocabulary of words."""
    spm = pytest.importorskip("sentencepiece")
    (folder / "words.txt").write_text("\n".join([" ".join(WORDS)] * 4))
    numbers = {"vocab_size": len(WORDS) + 3, "pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
    spm.SentencePieceTrainer.train(
        input=str(folder / "words.txt"), model_prefix=str(folder / "spiece"), model_type="word", minloglevel=2, **numbers
    )
    return transformers.SiglipTokenizer(str(folder / "spiece.model"), model_max_length=CONTEXT, model_input_names=["input_ids"])


def write_transformers_siglip(folder, tokenizer=None):
    """SigLIP of transformers, with a tokenizer of words; the network comes back."""
    special = {"<pad>": 0, "<unk>": 1, "</s>": 2}
    tokenizer = tokenizer or sentence_tokenizer(special)
    configuration = transformers.SiglipConfig(
        text_config={**TOKENS, "vocab_size": len(tokenizer), "max_position_embeddings": CONTEXT, "projection_size": WIDTH},
        vision_config={**TOKENS, "image_size": SIZE, "patch_size": 8},
    )
    return _write(folder, transformers.SiglipModel, configuration, tokenizer)


def _write(folder, kind, configuration, tokenizer):
    with torch.random.fork_rng():
        network = loud(kind(configuration))
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    transformers.ViTImageProcessor(size={"height": SIZE, "width": SIZE}).save_pretrained(folder)
    return network
