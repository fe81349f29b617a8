"""The chain discover: stretches that recur in a collection, without queries."""
