"""What a config can name: entries, registries, and what is built in."""
