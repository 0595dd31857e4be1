"""Tables from records. They read records alone, and every number in them leads back to some."""

from vpref.reports.accuracy import Evaluation, accuracy_summary, accuracy_tables
from vpref.reports.changes import changed_table, compared_tables
from vpref.reports.comparison import comparison_tables
from vpref.reports.costs import cost_table
from vpref.reports.counts import Count, Counted, counted_tables
from vpref.reports.dashboards import generation_row
from vpref.reports.dependence import dependence_tables
from vpref.reports.extraction import extraction_table
from vpref.reports.generation import GenerationCounts, generation_tables, generations_tables
from vpref.reports.people import People, people_tables
from vpref.reports.steadiness import steadiness_tables
from vpref.reports.table import Table, write_tables

__all__ = [
    "Count",
    "Counted",
    "Evaluation",
    "GenerationCounts",
    "People",
    "Table",
    "accuracy_summary",
    "accuracy_tables",
    "changed_table",
    "compared_tables",
    "comparison_tables",
    "cost_table",
    "counted_tables",
    "dependence_tables",
    "extraction_table",
    "generation_row",
    "generation_tables",
    "generations_tables",
    "people_tables",
    "steadiness_tables",
    "write_tables",
]
