"""A load profile of kperf (github.com/Azure/kperf), run by connections of ours.

    locust --headless -f locustfiles/kperf.py --scenario profile.yaml

Without ``-H``, ``--endpoints`` or ``--kubeconfig`` an emulated control plane is started for the run (``--members``),
sized for ``-u`` nodes. With ``--processes`` or workers every request of the profile is one of theirs. ``-t`` is a cap.
The report, in kperf's format and more, is artifacts/kperf.json of the run's record (docs/kperf.md).
"""

from harness.load import hooks
from harness.load.kperf import KperfShape, KperfUser
from harness.load.users import ControllersUser, SchedulerUser

hooks.install()


class Kperf(KperfUser):
    """One share of the profile; the shape makes one on each worker."""


class Scheduler(SchedulerUser):
    """Binds pods, where the target has no scheduler."""


class Controllers(ControllersUser):
    """Service accounts, root CAs and namespaces, where the target has no controller manager."""


class ProfileShape(KperfShape):
    """All of them, until the profile has ended."""
