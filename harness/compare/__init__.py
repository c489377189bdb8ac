"""What run records mean, side by side: the rows of a comparison and their figures.

Belongs here: reading series and histograms of a record into figures, the definition of every row, medians, ranges and
differences over samples. Does not belong here: how a report looks (`harness.report`), how runs are made.
"""
