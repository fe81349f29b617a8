"""First passes that propose windows, which the exact search then visits: interface, registry, and a file each."""
