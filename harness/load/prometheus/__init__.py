"""The Prometheus of a run: whose it is, how it is reached and asked.

Here belongs what does the asking for a scenario, on Locust's master, which alone has the credentials and can reach a
Prometheus that it started (a worker's question comes through `harness.load.desk`): the options, access (URL,
credentials, TLS), the HTTP client. What is asked and what an answer means does not belong here
(`harness.clusterloader.measurements.prometheus`, `harness.wire.promql`), nor how a binary is started
(`harness.pool.prometheus`).
"""
