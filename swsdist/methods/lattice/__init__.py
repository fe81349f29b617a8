"""The methods lattice and lattice-edits: written terms, or queries' lattices, in a store of lattices."""
