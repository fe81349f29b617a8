"""Calibration: makes scores comparable between queries, and decides by a threshold."""
