"""The commands of `swsdist`, a file for those of one kind."""
