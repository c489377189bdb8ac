"""A fleet of kubelets, and the scenario that gives them pods.

    locust --headless -f locustfiles/kubelets.py -u 200 -r 100

``-u`` is the number of kubelets, ``-r`` how many register each second, ``-t`` a cap. Without ``-H`` or ``--kubeconfig``
an emulated control plane is started for the run (``--members``). Copy this file and subclass to make your own fleet.
"""

from harness.load import hooks
from harness.load.shape import ScenarioShape
from harness.load.users import ClusterLoaderUser, ControllersUser, KubeletUser, SchedulerUser

hooks.install()


class Kubelet(KubeletUser):
    """One node."""


class ClusterLoader(ClusterLoaderUser):
    """Runs ``--scenario``, then ends the run."""


class Scheduler(SchedulerUser):
    """Binds pods, where the target has no scheduler."""


class Controllers(ControllersUser):
    """Service accounts, root CAs and namespaces, where the target has no controller manager."""


class FleetShape(ScenarioShape):
    """All of them, until the scenario has ended."""
