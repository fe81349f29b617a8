"""Models that are fitted to the documents of a corpus, in rounds of sums of whole numbers: any cut gives the same model."""
