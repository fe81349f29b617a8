"""Several hosts on one machine, for tests of a cluster and for benchmarks: namespaces, Ray nodes, an S3 server, faults."""
