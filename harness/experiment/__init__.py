"""Experiments: samples of several arms, run in turn, and their report.

Belongs here: an experiment's file and its ledger, the order of samples, starting one Locust run for each, progress,
finding records that a user names, and handing them to `harness.report`. Does not belong here: what a run does
(`harness.load`), what figures mean (`harness.compare`).
"""
