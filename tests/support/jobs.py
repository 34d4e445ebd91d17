"""What may be around a training and must not decide how it is done: job schedulers, and programs that start several processes."""

import os

SLURM = {"SLURM_JOB_ID": "7", "SLURM_JOB_NAME": "train.sh", "SLURM_NNODES": "1", "SLURM_NODELIST": "n[1-2]"}


def jobs_around(folder):
    """Name → environment variables; in each there is a program ``srun`` on the path, put into ``folder``."""
    programs = folder / "programs"
    programs.mkdir()
    srun = programs / "srun"
    srun.write_text("#!/bin/sh\necho srun was started >&2\nexit 1\n", encoding="utf-8")
    srun.chmod(0o755)
    hosts = folder / "hosts"
    hosts.write_text("batch\nn1\nn1\n", encoding="utf-8")
    path = {"PATH": os.pathsep.join([str(programs), os.environ["PATH"]])}
    place = {"SLURM_PROCID": "3", "SLURM_LOCALID": "3", "SLURM_NODEID": "0"}
    jobs = {
        "a login node": {},
        "sbatch, tasks": {**SLURM, "SLURM_NTASKS": "4", "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NODEID": "0"},
        "sbatch, one task a node": {**SLURM, **place, "SLURM_NTASKS": "2", "SLURM_NTASKS_PER_NODE": "1"},
        "srun": {**SLURM, **place, "SLURM_NTASKS": "4", "SLURM_NTASKS_PER_NODE": "4", "SLURM_STEP_NUM_TASKS": "4"},
        "torchrun": {
            "RANK": "3", "LOCAL_RANK": "3", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "4", "GROUP_RANK": "1", "NODE_RANK": "1",
            "MASTER_ADDR": "192.0.2.1", "MASTER_PORT": "9", "TORCHELASTIC_RUN_ID": "7", "TORCHELASTIC_USE_AGENT_STORE": "True",
        },
        "LSF": {
            "LSB_JOBID": "7", "LSB_DJOB_RANKFILE": str(hosts), "JSM_NAMESPACE_RANK": "3", "JSM_NAMESPACE_SIZE": "4",
            "JSM_NAMESPACE_LOCAL_RANK": "3",
        },
        "MPI": {"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_LOCAL_RANK": "3", "PMI_RANK": "3"},
        "Kubeflow": {"KUBERNETES_PORT": "tcp://192.0.2.1", "MASTER_ADDR": "192.0.2.1", "MASTER_PORT": "9", "WORLD_SIZE": "4"},
        "Lightning's command": {
            "LT_CLI_USED": "1", "LT_DEVICES": "3", "LT_NUM_NODES": "2", "LT_ACCELERATOR": "cpu", "LT_PRECISION": "bf16-mixed",
            "LT_STRATEGY": "ddp",
        },
    }  # fmt: skip
    return {name: {**variables, **path} for name, variables in jobs.items()}
