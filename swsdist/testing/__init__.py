"""For tests, here and elsewhere: oracles, the conformance suite, synthetic speech."""
