"""A real SLURM on this machine, of two nodes and two partitions, where Debian's packages slurm-wlm and munge are installed.

No systemd and no cgroups. Without its database, as on many small clusters, ``sacct`` knows nothing; with it (Debian's packages
slurmdbd and mariadb-server) submitit asks it. ``high`` preempts ``low``.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

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
AccountingStorageType=accounting_storage/{accounting}
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

DATABASE_PROGRAMS = ("slurmdbd", "mariadbd", "mariadb", "mariadb-install-db", "mariadb-admin")
OF_DATABASE = """\
AccountingStorageHost=localhost
AccountingStoragePort={port}
AccountingStorageUser=root
AccountingStoragePass={folder}/munge/socket
"""
DATABASE = """\
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket,cred_expire=5
DbdHost=localhost
DbdPort={port}
SlurmUser=root
PidFile={folder}/slurmdbd.pid
LogFile={folder}/slurmdbd.log
StorageType=accounting_storage/mysql
StorageUser=root
StorageLoc=slurm_acct_db
"""


def has_database():
    """Whether its database can be started, too."""
    return all(shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") for name in DATABASE_PROGRAMS)


def is_installed():
    """Whether it can be started: its programs are there, and this is the user they expect."""
    return os.geteuid() == 0 and all(shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") for name in PROGRAMS)


class Cluster:
    """A cluster that runs.

    Attributes:
        environment: What its commands need.
        with_database: Whether ``sacct`` knows what ended.
        own: Processes of it that are children of this one.
    """

    def __init__(self, folder, *, with_database):
        self.folder, self.with_database, self.own = folder, with_database, []
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


def start_database(here, port):
    """MariaDB, reached by its socket alone, and slurmdbd, which looks for its file beside slurm.conf."""
    folder = here.folder / "mysql"
    folder.mkdir()
    of_server = [f"--datadir={folder}", "--user=root"]  # nobody else reaches temporary folders of tests
    socket_of_it = f"--socket={folder}/socket"
    subprocess.run(
        ["mariadb-install-db", *of_server, "--auth-root-authentication-method=socket"],
        env=here.environment,
        check=True,
        capture_output=True,
    )
    only_here = [socket_of_it, f"--pid-file={folder}/pid", "--skip-networking", "--innodb-buffer-pool-size=64M"]
    with (here.folder / "mariadb.log").open("w") as log:
        server = ["mariadbd", *of_server, *only_here, "--innodb-lock-wait-timeout=900"]
        here.own.append(subprocess.Popen(server, env=here.environment, stdout=log, stderr=log))
    wait_for(lambda: "alive" in here.ask("mariadb-admin", socket_of_it, "ping"), here.folder / "mariadb.log")
    here.ask("mariadb", socket_of_it, "-e", "create database slurm_acct_db")
    file = here.folder / "slurmdbd.conf"
    file.write_text(DATABASE.format(folder=here.folder, port=port))
    file.chmod(0o600)
    subprocess.run(["slurmdbd"], env={**here.environment, "MYSQL_UNIX_PORT": f"{folder}/socket"}, check=True)
    wait_for(lambda: is_open(port), here.folder / "slurmdbd.log")


def is_open(port):
    with socket.socket() as asked:
        return asked.connect_ex(("127.0.0.1", port)) == 0


def wait_for(condition, log):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, log.read_text()[-2000:]
        time.sleep(0.2)


@contextmanager
def cluster(folder, *, with_database=False):
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
    here = Cluster(folder, with_database=with_database)
    subprocess.run(munged, env=here.environment, check=True, capture_output=True)
    port, first, second, of_database = free_ports(4)
    host = socket.gethostname().partition(".")[0]
    accounting = "slurmdbd" if with_database else "none"
    text = CONFIGURATION.format(host=host, folder=folder, port=port, first=first, second=second, accounting=accounting)
    text += OF_DATABASE.format(folder=folder, port=of_database) if with_database else ""
    (folder / "slurm.conf").write_text(text)
    try:
        if with_database:
            start_database(here, of_database)
        subprocess.run(["slurmctld"], env=here.environment, check=True)
        here.start_node("n1")
        here.start_node("n2")
        wait_for(lambda: here.ask("sinfo", "-h", "-p", "low", "-N", "-o", "%T").split() == ["idle"] * 2, folder / "slurmctld.log")
        yield here
    finally:
        names = ("slurmctld.pid", "slurmdbd.pid", "mysql/pid", "munge/pid")
        for file in [*folder.glob("slurmd-*.pid"), *(folder / name for name in names)]:
            with suppress(OSError, ValueError):
                end(int(Path(file).read_text()))
        for process in here.own:
            process.kill()
            process.wait()


def end(pid):
    """End a process, in order if it does so within some seconds."""
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        process.terminate()
        for _ in range(50):
            if process.status() == psutil.STATUS_ZOMBIE:  # the first process of a container may never ask for it
                return
            time.sleep(0.1)
        process.kill()
