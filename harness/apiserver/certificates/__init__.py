"""Certificates inside a member: reading signing requests, approving kubelets' and signing what has been approved.

Stands in for kube-controller-manager's csrapproving and csrsigning controllers (kk/pkg/controller/certificates), where
none runs. What the objects look like is `strategies.certificates`; who may approve is `admission.certificates`; whom a
client certificate stands for is `auth.authentication`. ``cryptography`` takes 70 ms to import and is therefore
imported on the first certificate that a member has to read."""
