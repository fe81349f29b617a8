"""Sound: recordings in, clips out."""
