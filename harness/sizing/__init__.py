"""How large a fleet fits where: workers, cores, memory, files, ports and network of so many kubelets.

Belongs here: what single kubelets cost (`calibration`, measured by `swarmlet bench --save`; `figures`, what no bench of
ours measures), the arithmetic from a fleet to what it needs (`need`, `limits`: numbers in, numbers out), this machine's
own limits (`machine`) and ``swarmlet plan``. Does not belong here: measuring (`harness.bench`), and what a scenario
will do (`swarmlet scenario plan`). Nothing upstream is mirrored; what a real kube-apiserver pays is measured.
"""
