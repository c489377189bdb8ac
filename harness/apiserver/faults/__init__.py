"""Faults that a member causes on purpose: what kinds there are, which are active, and how each is done.

What belongs here: the kinds as values (`kinds`), how they are written on a command line (`spec`), the list of active
ones with their seeds, ends and events (`active`), and those that are done to requests (`requests`) and to connections
(`connections`). What does not: the parts that are disturbed. A part that can be disturbed gives `Faults.provide` one
function for its kind; while no fault is active, nothing of this package is called.

Upstream has one of them, GOAWAY with a probability (kube-apiserver's --goaway-chance, as/server/filters/goaway.go);
the rest is what load balancers, kernels, disks and clocks do to a control plane.
"""
