"""The search chain leads from audio to a scored report; each stage is a file."""
