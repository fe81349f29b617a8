# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Quick start
#
# Make a small corpus of made-up speech, search it, look at what lies between the steps, and plot how well it went. It takes
# less than a minute. Everything is written below `quickstart/` in the working directory.

# %%
from pathlib import Path

import pandas as pd
from IPython.display import SVG, display

import swsdist
from swsdist.report.page import det_plot, histogram_plot
from swsdist.testing.synthesis import make_corpus

place = Path("quickstart")
make_corpus(place / "corpus", documents=24, queries=6)

# %% [markdown]
# A corpus is three tables: what is searched, what is looked for, and where it truly occurs.

# %%
pd.read_csv(place / "corpus/queries.csv").head()

# %% [markdown]
# ## Run
#
# The same as `swsdist run config.yaml`; a mapping instead of a file. `serial` runs in this process; `ray` would use all CPUs.

# %%
config = {
    "run": str(place / "run"),
    "corpus": {
        "documents": str(place / "corpus/docs.csv"),
        "queries": str(place / "corpus/queries.csv"),
        "references": str(place / "corpus/refs.csv"),
        "examples": "all",
    },
    "executor": {"kind": "serial"},
}
result = swsdist.run(config)
result.measures()

# %% [markdown]
# Again: nothing is left to do, so nothing is done.

# %%
again = swsdist.run(config)
assert again.outcome.did == 0
assert again.measures() == result.measures()

# %% [markdown]
# ## What lies between the steps
#
# Each stage leaves Parquet tables (`docs/reference/tables.md`). The end of the way is the scored list, best first:

# %%
detections = result.detections()
detections[detections["decision"].astype(bool)].head(10)

# %% [markdown]
# The store holds the features, a NumPy array a document.

# %%
store = swsdist.open_store(str(place / "run/store"))
print(store.features("d001").shape)

# %% [markdown]
# ## Search for one more thing
#
# Without a config: a recording, or a place in one.

# %%
hits = swsdist.search(store, str(place / "corpus/queries/q001_1.wav"), top=5)
hits[["doc_id", "start", "end", "score"]]

# %% [markdown]
# ## How well did it go?
#
# The report is `quickstart/run/report.html`. Its plots are functions: the detection error trade-off, and the scores of
# detections that are true and those that are not.

# %%
assert result.report is not None
display(SVG(det_plot(result.report)))

# %%
display(SVG(histogram_plot(result.report)))

# %% [markdown]
# ## The same bytes
#
# Cut the work differently: seven shards instead of one. The digest is over all rows of all tables.

# %%
other = swsdist.run(config, sets=[f"run={place}/seven", "index.shards=7"])
assert swsdist.digest(str(place / "seven"))["all"] == swsdist.digest(str(place / "run"))["all"]
swsdist.digest(str(place / "seven"))["all"]
