"""What stands around the tests: cases of other programs, hosts, faults, the check on a GPU. benchmarks/ uses it, too."""
