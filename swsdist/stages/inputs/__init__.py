"""What a run is given: documents, queries, references, stores and models, what is odd about them, and what scores depend on."""
