"""What parallel training makes of a network that ρSIM watches."""

from __future__ import annotations

from torch import nn
from torch.nn.parallel import DataParallel, DistributedDataParallel

from crossgraft.errors import UsageError
from crossgraft.models.taps import with_wrappers


def refuse_replicas(model: nn.Module) -> None:
    """Refuse a wrapper of parallel training, which knows nothing of the reconstructors.

    Raises:
        UsageError: Processes would learn other reconstructors each, or replicas would not be seen.
    """
    layers = with_wrappers(model)
    if any(isinstance(each, DataParallel) for each in layers):
        raise UsageError(
            "rho_sim does not see the replicas that DataParallel runs. Use DistributedDataParallel, or give the network itself "
            "and train it on one device."
        )
    if any(isinstance(each, DistributedDataParallel) for each in layers):
        raise UsageError(
            "DistributedDataParallel does not average the gradients of the reconstructors of rho_sim, so that they would drift "
            "apart. Make RhoSim(network, example=…) first, put network and sim.reconstructors into one module, and wrap that; or "
            "wrap what init_SIM(network, example=…) returned."
        )
