"""Parts of measures: tables that a bucket of queries yields, that merge as streams, and from which every measure comes."""
