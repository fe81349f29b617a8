"""Fuses lists of several systems: joins, imputes, weighs."""
