"""Part tables of measures: computed per bucket of queries, merged as streams, input of every measure."""
