"""Self Identity Mapping on any network: an engine, and the decorators of its paper."""

from typing import TYPE_CHECKING

from crossgraft.faces import lazy_face

if TYPE_CHECKING:
    from crossgraft.tune.sim.decorators import forward_with_SIM as forward_with_SIM
    from crossgraft.tune.sim.decorators import init_SIM as init_SIM
    from crossgraft.tune.sim.decorators import strip as strip
    from crossgraft.tune.sim.rho_sim import RhoSim as RhoSim

lazy_face(__name__)
