"""Search for stretches that recur: segments, neighbours, matches, clusters, parses. Plain functions on arrays."""
