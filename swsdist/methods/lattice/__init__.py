"""The method lattice: written terms in a store of lattices."""
