"""Methods of search: how a group of queries and a store become candidates."""
