"""What each operation of torch becomes in ONNX: PyTorch reads 500 sources for that, each time; here, once a process."""

import copy
import sys
from functools import cache, wraps

REGISTRATION = "torch.onnx._internal.exporter._registration"


def share_translations():
    """Once PyTorch has imported it; each graph is still translated by itself, with a list of its own that it may change."""
    registry = getattr(sys.modules.get(REGISTRATION), "ONNXRegistry", None)
    genuine = getattr(registry, "from_torchlib", None)
    if genuine is None or hasattr(genuine, "__wrapped__"):
        return
    read = cache(genuine)

    @wraps(genuine)
    def from_torchlib(*args, **keywords):
        own = copy.copy(read(*args, **keywords))
        own.functions = {operation: [*known] for operation, known in own.functions.items()}
        return own

    registry.from_torchlib = staticmethod(from_torchlib)
