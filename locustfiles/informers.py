"""A crowd of informers, clients that LIST, and a writer beside them.

    locust --headless -f locustfiles/informers.py --informers count=200 --writer objects=10000,rate=50 -t 2m

``-t`` counts from the moment at which all begin. Everything that informers are told is checked; a violation fails the
run. Without ``-H`` or ``--kubeconfig`` an emulated control plane is started (``--members``), sized for ``-u`` nodes.
With kubelets.py in one run: ``-f locustfiles/kubelets.py,locustfiles/informers.py`` (docs/informers.md).
"""

from harness.load import hooks
from harness.load.informerusers import InformerUser, ListUser, WriterUser
from harness.load.shape import ScenarioShape

hooks.install()


class Informer(InformerUser):
    """One informer of ``--informers``."""


class Lister(ListUser):
    """One client of ``--lists``."""


class Writer(WriterUser):
    """Makes what informers find, and changes it."""


class InformersShape(ScenarioShape):
    """All of them, until -t."""
