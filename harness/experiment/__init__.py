"""Experiments: samples of several arms, run in turn, and their report.

Belongs here: the order of samples, starting one Locust run for each, progress, and handing the records to
`harness.report`. Does not belong here: what a run does (`harness.load`), what figures mean (`harness.compare`).
"""
