"""A sweep as one page of HTML that is alive in a browser and needs no network.

`data` turns moments into the numbers of the page: for each cell and schedule the means of all
counts and their covariance matrix, from which the page computes the mean total cost and its
standard error at every C and at any prices by itself. Its size does not depend on the number of
trials. `details` adds quantiles, bounds and verdicts, and `compare` adds paired comparisons. `page`
puts numbers, words and scripts into one file: ``model.js`` computes, ``page.js``, ``prices.js``,
``compare.js`` and ``verdicts.js`` show, and ``vendor`` has Vega, Vega-Lite and Vega-Embed, which
draw. `write_report` does all that.
"""

from fastfed.display.report.write import write_report

__all__ = ["write_report"]
