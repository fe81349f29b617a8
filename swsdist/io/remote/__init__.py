"""Object storage: a client per process, retried requests, and checked bodies. Imported only where S3 is used."""
