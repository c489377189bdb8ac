"""What swarmlet's hot paths cost, as a suite that is run by hand: ``python -m benchmarks`` (``make bench``).

What belongs here: small loads that isolate one part, and their results as committed under ``results/``. What does not:
assertions about speed (a shared machine cannot keep them; ``tests/benchmarks`` only checks that each benchmark runs),
and loads that answer a question about Kubernetes (those are scenarios).

Figures are CPU time of the process measured, never wall-clock time: other work on the machine then costs precision, not
truth. Where two things are compared they take turns within one run, and the figure is their ratio. ``registry`` holds
what a benchmark is, ``measure`` how figures are taken, ``child`` runs what needs a process of its own, ``results`` is
the table and the files, ``suites`` are the benchmarks.
"""
