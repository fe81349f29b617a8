"""`python -m swsdist.testing.gpu [CASE...]`: checks that the search on this GPU gives the bytes of the CPU. From a checkout."""

from swsdist.testing.checkout import run

if __name__ == "__main__":
    run("gpu")
