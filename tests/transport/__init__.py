"""Tests of harness.transport against scripted peers that share no code with it."""
