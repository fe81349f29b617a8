"""What a corpus holds, for its description in a paper."""
