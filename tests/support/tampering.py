"""A ``model.json`` as somebody writes it who knows how it is sealed; shares no code with crossgraft."""

import hashlib
import json


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
