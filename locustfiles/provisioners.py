"""A CSI driver's provisioners, and the claims that they get.

    locust --headless -f locustfiles/provisioners.py --claims 100
    locust --headless -f locustfiles/provisioners.py --claims 100 --provisioner legacy --provisioner-replicas 3
    locust --headless -f locustfiles/provisioners.py --claims 1000 --virtual

The run ends when every claim is bound. ``--provisioner-options`` changes one thing at a time (docs/provisioners.md),
``--virtual`` needs neither sockets nor the time that passes. With kubelets.py in one run:
``-f locustfiles/kubelets.py,locustfiles/provisioners.py``.
"""

from harness.load import hooks
from harness.load.provisionerusers import ClaimsUser, ProvisionerUser
from harness.load.shape import ScenarioShape
from harness.load.users import ControllersUser

hooks.install()


class Provisioner(ProvisionerUser):
    """All replicas."""


class Claims(ClaimsUser):
    """Makes ``--claims``, then ends the run."""


class VolumeControllers(ControllersUser):
    """Binds claims to volumes, where the target has no controller manager."""


class ClaimsShape(ScenarioShape):
    """All of them, until every claim is bound."""
