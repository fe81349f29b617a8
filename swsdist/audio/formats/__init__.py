"""File formats: extent and faults by a file's bytes, archives, and decoding by ffmpeg."""
