"""Provisioners of volumes: the sidecar beside a CSI driver's controller, as it was and as it is.

Here belongs what such a process decides: which claims it takes on, how it sees to it that no other replica does the
same, which requests it sends for each, when it tries again; and the claims that a run gives it (`scenario`). Not here:
the binding of claims to volumes, which is the controller manager's (`harness.fleet.controllers.volumes`), and the
storage itself, which is no more than a time and a chance of failure (`backend`).

Mirrored: external-storage v4.0.0 (``es/`` in the modules: lib/controller, lib/leaderelection), the last with an
election for each claim; and external-provisioner after v6.3.0 (``ep/``) with sig-storage-lib-external-provisioner
v13.0.0 (``sl/``). The two are presets of one set of options, so that each change between them can be tried alone: see
`options`. docs/provisioners.md says what is and is not modelled.
"""
