"""Search without a run: a store with prepared shards in memory, and queries one after another."""
