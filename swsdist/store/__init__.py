"""The feature store: shards of frames, the documents in them, and one manifest that names both."""
