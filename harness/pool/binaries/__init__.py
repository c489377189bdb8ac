"""A pool of real kube-apiservers on this machine, without a cluster or containers.

Belongs here: where the binaries are, the command line of each, keys and kubeconfigs of its components, starting and
ending them, what is made once they serve. Does not belong here: etcd (`harness.pool.etcd`), a program's life as a child
(`harness.pool.guardian`), anything of an emulated member. What is started, and with which flags, follows the control
planes of Kubernetes' own tests (controller-runtime pkg/internal/testing/controlplane; kk/hack/local-up-cluster.sh).
"""
