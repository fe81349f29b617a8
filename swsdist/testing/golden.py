"""`python -m swsdist.testing.golden DIR...`: do cases that other programs answered have our answers? From a checkout."""

from swsdist.testing.checkout import run

if __name__ == "__main__":
    run("golden")
