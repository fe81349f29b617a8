"""One search without a run: a store whose prepared shards are held, and queries that come one after the other."""
