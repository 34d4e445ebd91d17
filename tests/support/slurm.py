"""A real SLURM on this machine, of two nodes and two partitions, where Debian's packages slurm-wlm and munge are installed.

No systemd, no cgroups, no database, so that ``sacct`` knows nothing, as on many small clusters. ``high`` preempts ``low``.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
from contextlib import contextmanager, suppress
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol")
CONFIGURATION = """\
ClusterName=local
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket,cred_expire=5
CryptoType=crypto/munge
SlurmctldPort={port}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
SwitchType=switch/none
MpiDefault=none
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=500
ReturnToService=2
SlurmctldTimeout=30
SlurmdTimeout=30
KillWait=3
MinJobAge=300
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={first} CPUs=1 RealMemory=2000 State=UNKNOWN
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={second} CPUs=1 RealMemory=2000 State=UNKNOWN
PartitionName=low  Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1  PreemptMode=REQUEUE GraceTime=2
PartitionName=high Nodes=ALL Default=NO  MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
"""


def is_installed():
    """Whether it can be started: its programs are there, and this is the user they expect."""
    return os.geteuid() == 0 and all(shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") for name in PROGRAMS)


class Cluster:
    """A cluster that runs.

    Attributes:
        environment: What its commands need.
    """

    def __init__(self, folder):
        self.folder = folder
        path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
        self.environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf"), "PATH": path}

    def ask(self, *command):
        """What a command of SLURM says."""
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=60, check=False)
        return done.stdout.strip()

    def tasks(self, state="R", partition="low"):
        """Numbers of the tasks of a partition in a state."""
        return self.ask("squeue", "-h", "-r", "-p", partition, "-t", state, "-o", "%i").split()

    def start_node(self, name):
        subprocess.run(["slurmd", "-N", name], env=self.environment, check=True)

    def kill_node(self, name):
        """As when its power is cut: its daemon is gone, and what runs on it hears nothing."""
        os.kill(int((self.folder / f"slurmd-{name}.pid").read_text()), signal.SIGKILL)
        self.ask("scontrol", "update", f"nodename={name}", "state=down", "reason=test")


def free_ports(number):
    """Ports that nothing listens at."""
    with suppress(OSError):
        sockets = [socket.socket() for _ in range(number)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        ports = [each.getsockname()[1] for each in sockets]
        for each in sockets:
            each.close()
        return ports
    raise RuntimeError("no free port")


@contextmanager
def cluster(folder):
    """Start it, and end exactly the processes that were started."""
    for name in ("munge", "state", "spool/n1", "spool/n2"):
        (folder / name).mkdir(parents=True)
    (folder / "munge").chmod(0o755)
    for parent in [folder, *folder.parents]:  # munged refuses folders that others may write to
        if parent.stat().st_mode & 0o022 and not parent.stat().st_mode & 0o1000:
            parent.chmod(0o755)
    key = folder / "munge" / "key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o600)
    places = {"key-file": key} | {f"{name}-file": folder / "munge" / name for name in ("pid", "log", "seed")}
    munged = ["munged", "--force", f"--socket={folder}/munge/socket", *(f"--{name}={path}" for name, path in places.items())]
    here = Cluster(folder)
    subprocess.run(munged, env=here.environment, check=True, capture_output=True)
    port, first, second = free_ports(3)
    host = socket.gethostname().partition(".")[0]
    text = CONFIGURATION.format(host=host, folder=folder, port=port, first=first, second=second)
    (folder / "slurm.conf").write_text(text)
    try:
        subprocess.run(["slurmctld"], env=here.environment, check=True)
        here.start_node("n1")
        here.start_node("n2")
        deadline = time.monotonic() + 60
        while here.ask("sinfo", "-h", "-p", "low", "-N", "-o", "%T").split() != ["idle", "idle"]:
            assert time.monotonic() < deadline, (folder / "slurmctld.log").read_text()[-2000:]
            time.sleep(0.2)
        yield here
    finally:
        for file in [*folder.glob("slurmd-*.pid"), folder / "slurmctld.pid", folder / "munge" / "pid"]:
            with suppress(OSError, ValueError):
                end(int(Path(file).read_text()))


def end(pid):
    """End a process, in order if it does so within some seconds."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
        for _ in range(50):
            os.kill(pid, 0)
            time.sleep(0.1)
        os.kill(pid, signal.SIGKILL)
