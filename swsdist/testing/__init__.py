"""For tests of this and other packages: the conformance suite, synthetic speech."""
