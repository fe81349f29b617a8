"""Nothing that another user may have written is unpickled: no file of the package calls what unpickles."""

from __future__ import annotations

import ast

from tools.pages.architecture import trees

#: Modules whose readers run what they read; numba's own cache is kept by `swsdist.kernels.compiled` alone.
UNSAFE = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}


def wrong(tree: ast.AST) -> list[str]:
    """What may unpickle, a line each."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [f"{node.lineno}: {one.name}" for one in node.names if one.name.split(".")[0] in UNSAFE]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in UNSAFE:
            found.append(f"{node.lineno}: {node.module}")
        elif isinstance(node, ast.Call):
            called, given = ast.unparse(node.func), {one.arg: ast.unparse(one.value) for one in node.keywords}
            if called in ("np.load", "numpy.load", "np.save", "np.savez") and given.get("allow_pickle") != "False":
                found.append(f"{node.lineno}: {called} without allow_pickle=False")
            if called == "torch.load" or called.endswith(("read_pickle", "to_pickle")):
                found.append(f"{node.lineno}: {called}")
            if given.get("cache") == "True" and called.rpartition(".")[2] in (
                "njit",
                "jit",
                "vectorize",
                "guvectorize",
            ):
                found.append(f"{node.lineno}: {called}, cached")
    return found


def test_nothing_is_unpickled() -> None:
    told = {name.removeprefix("swsdist/"): lines for name, tree in trees().items() if (lines := wrong(tree))}
    (cached,) = told.pop("kernels/compiled.py")
    assert cached.endswith("numba.njit, cached")
    # Tasks that wait, in a file without a name that this process alone has open.
    assert told.pop("pipeline/receipts.py") == ["16: pickle"]
    assert told == {}


def test_what_is_found() -> None:
    calls = ("np.load(x)", "torch.load(x)", "pd.read_pickle(x)", "njit(f, cache=True)")
    assert all(wrong(ast.parse(text)) for text in ("import pickle", "from joblib import load", *calls))
