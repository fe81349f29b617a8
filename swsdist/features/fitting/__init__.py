"""Models fitted to the documents of a corpus by integer sums: any division into tasks gives the same model."""
