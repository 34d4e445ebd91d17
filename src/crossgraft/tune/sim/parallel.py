"""What parallel training makes of a network that ρSIM watches."""

from __future__ import annotations

from torch import nn
from torch.nn.parallel import DataParallel, DistributedDataParallel

from crossgraft.errors import UsageError


def refuse_replicas(model: nn.Module) -> None:
    """Refuse a wrapper of parallel training, which knows nothing of the reconstructors.

    Raises:
        UsageError: Processes would learn other reconstructors each, or replicas would not be seen.
    """
    if isinstance(model, DataParallel):
        raise UsageError(
            "rho_sim does not see the replicas that DataParallel runs. Use DistributedDataParallel, or give the network itself "
            "and train it on one device."
        )
    if isinstance(model, DistributedDataParallel):
        raise UsageError(
            "DistributedDataParallel does not average the gradients of the reconstructors of rho_sim, so that they would drift "
            "apart. Make RhoSim(network, example=…) first, put network and sim.reconstructors into one module, and wrap that; or "
            "wrap what init_SIM(network, example=…) returned."
        )
