"""Tests of the package that need nothing but Python and the program, which ``KGFLEET_PROGRAM`` names."""
