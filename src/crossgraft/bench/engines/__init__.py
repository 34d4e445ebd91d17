"""Engines, one file each; one of another package comes by the entry point ``crossgraft.engines``."""

from crossgraft.bench.engine import Engine
from crossgraft.bench.engines import dask, local, ray, slurm
from crossgraft.registry import Registry

ENGINES: Registry[Engine] = Registry("engine", group="crossgraft.engines", plugin_type=Engine)
for _module in (local, slurm, ray, dask):
    ENGINES.add(_module.ENGINE.name, _module.ENGINE)
