"""Formats of lattices and transcripts, a file each; `swsdist.registry.registries.LATTICE_FORMATS` names them."""
