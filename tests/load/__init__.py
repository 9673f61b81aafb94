"""Load on a running mesh: run by hand or by make, never by the tests."""
