"""What a person sees at the end of a run: a machine-readable report, a page and a table.

One frozen tree, `swsdist.report.data.ReportData`, holds all that is shown; nothing here reads or writes a file.

* `swsdist.report.schema.write_report_json` makes the content of `report.json`;
* `swsdist.report.page.render_page` makes `report.html`;
* `swsdist.report.headline` is what both begin with: six figures, and what is odd;
* `swsdist.report.summary.print_summary` prints every figure;
* `swsdist.report.plots.svg` draws the plots, also alone for a paper.
"""
