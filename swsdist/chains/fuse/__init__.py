"""The chain fuse: several systems, finished or run first, become one."""
