"""SUPERB's query-by-example number: QUESST 2014 in English, searched with each layer of a speech encoder.

Each layer of a set of queries is a plan of one run folder, an ordinary config of the chain `search`; all share one store, so
the encoder sees a recording once. The development queries choose the layer, the evaluation queries are searched with it alone.

Sources: Yang et al., "SUPERB: Speech processing Universal PERformance Benchmark", 2021, and what its public code does.
"""
