"""A ``model.json`` as somebody writes it who knows how it is sealed; shares no code with crossgraft."""

import hashlib
import json

from safetensors.torch import load_file, save


def reseal(values):
    """The same mapping with the checksums that belong to it: SHA-256 of each field, of a mapping of each of its keys."""
    sealed = {}
    for name, value in values.items():
        if name == "checksums":
            continue
        parts = {f"{name}.{key}": part for key, part in value.items()} if isinstance(value, dict) else {name: value}
        for key, part in parts.items():
            text = json.dumps(part, sort_keys=True, separators=(",", ":"))
            sealed[key] = hashlib.sha256(text.encode()).hexdigest()
    return {**values, "checksums": sealed}


def change_sealed(path, **changes):
    """Change fields of a ``model.json`` together with their checksums."""
    path.write_text(json.dumps(reseal({**json.loads(path.read_text()), **changes})))


def exchange_weights(folder, change):
    """Other weights in the folder of a saved model, with the checksum that belongs to them; ``change`` gets name and tensor."""
    path = folder / "weights.safetensors"
    content = save({name: change(name, tensor).contiguous() for name, tensor in load_file(path).items()})
    path.write_bytes(content)
    change_sealed(folder / "model.json", weights_sha256=hashlib.sha256(content).hexdigest())
