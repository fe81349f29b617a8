"""The search on a GPU: what a thread does (`threads`), and the kernels that are launched (`launch`)."""
