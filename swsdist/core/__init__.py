"""Words that everybody uses: errors, types of tables, times, names of things."""
