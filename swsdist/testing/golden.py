"""`python -m swsdist.testing.golden DIR...`: compares results of other programs with ours. From a checkout."""

from swsdist.testing.checkout import run

if __name__ == "__main__":
    run("golden")
