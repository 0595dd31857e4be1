"""A report as one HTML page that needs nothing else: tables, charts, and a gallery of items to search.

Turns tables and records into text. Knows nothing of run folders, models or networks, and loads Altair and Jinja only
where a page is made.
"""

from vpref.pages.items import Items
from vpref.pages.page import Page, render

__all__ = ["Items", "Page", "render"]
