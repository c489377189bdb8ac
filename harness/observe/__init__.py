"""What a run leaves behind: scraped series, request histograms, events, and the record that holds them.

Belongs here: reading /metrics, histograms, the run record and its reader. Does not belong here: what the figures mean
(`harness.compare`), how they are shown (`harness.report`), Locust. Nothing here imports another package of harness
but `harness.wire.errors`.
"""
