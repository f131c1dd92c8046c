"""Tests with inspect_ai, lm_eval, pandas and pyarrow as people install them; `tests/python` installs and runs them.

They need the program, which ``KGFLEET_PROGRAM`` names, and no network.
"""
