"""The search on a GPU: what a thread does (`rows`, `threads`), and the kernels that are launched (`launch`)."""
