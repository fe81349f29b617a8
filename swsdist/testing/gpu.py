"""`python -m swsdist.testing.gpu [CASE...]`: does the search on this GPU give the bytes of the CPU, and how fast is it?"""

from swsdist.testing.checkout import run

if __name__ == "__main__":
    run("gpu")
