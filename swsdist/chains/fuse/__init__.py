"""The fuse chain makes one system of several: it takes their lists, or runs them first."""
