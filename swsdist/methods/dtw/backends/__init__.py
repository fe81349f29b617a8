"""Who does the exact search: vectors of this CPU, its BLAS, or a GPU; the bytes are the same. `interface` says what each is."""
