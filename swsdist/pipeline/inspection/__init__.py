"""Looking at a run folder from outside: what is done, what is left, what it holds, and whether this machine is fit."""
