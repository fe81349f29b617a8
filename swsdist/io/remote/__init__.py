"""Object storage: a client a process, requests that are made again, and bodies that are checked. Imported where S3 is used."""
