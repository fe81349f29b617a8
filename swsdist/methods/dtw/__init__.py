"""The method dtw: exact subsequence DTW, its settings, and its backends."""
