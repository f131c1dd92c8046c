"""Tests of the package: `core` needs nothing but Python and the program, `others` the packages that it works with."""
