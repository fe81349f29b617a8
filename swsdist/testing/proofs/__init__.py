"""Small things that show what the house holds: each is a file, and nothing else knows of it.

* `kmeans`: a chain whose stage has rounds; a model that is fitted by exact sums, and pinned.
* `pronunciations`: a method for text, in a store of phones, that scores posteriors.
* `joined`: a chain that reads the tables of two runs.
* `alphas`: many plans in one ledger.

They are not registered: who wants one names it in an entry point, or adds it to a registry, as their tests do.
"""
