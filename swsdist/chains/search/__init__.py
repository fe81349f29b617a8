"""The chain from audio to a scored report, a file a stage."""
