"""The report of a run: a machine-readable file, a page and a table.

All its data are in one frozen tree, `swsdist.report.data.ReportData`; nothing here reads or writes a run.

* `swsdist.report.data.write_report_json` makes the content of `report.json`;
* `swsdist.report.page.render_page` makes `report.html`;
* `swsdist.report.summary` begins both with six figures, and issues, and prints every figure;
* `swsdist.report.plots.curves` draws the plots, also alone for a paper.
"""
