"""Self Identity Mapping on any network: an engine, and the decorators of its paper."""

from crossgraft.tune.sim.rho_sim import RhoSim as RhoSim
