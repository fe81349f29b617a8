"""The method windows: a coarse search in windows as long as the query, and DTW in the best of them."""
