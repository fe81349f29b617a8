"""Where tasks run: in this process, or on Ray."""
