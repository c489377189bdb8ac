"""A load balancer in front of a pool's members, where its binary is at hand: HAProxy in TCP mode.

Belongs here: its options (`options`), its configuration and its process (`haproxy`), what its statistics say (`stats`).
Does not belong here: clients that choose a member themselves (`harness.transport.endpoints`).

It is set up as kubeadm's guide sets one up for several control-plane nodes (docs/ha-considerations.md of
kubernetes/kubeadm: TCP mode, health checks over HTTPS), with one difference: watches are silent for longer than the
guide's time-outs of 35 s, so idle connections are kept.
"""
