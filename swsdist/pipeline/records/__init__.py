"""What the driver keeps of many tasks: columns in memory and records in a file, no Python object a task."""
