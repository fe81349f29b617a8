"""Kinds of files: what their bytes tell, archives, and what ffmpeg decodes."""
