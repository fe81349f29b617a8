"""Exact subsequence DTW: engine, lanes, products, devices."""
