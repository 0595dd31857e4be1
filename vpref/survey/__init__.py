"""A survey's own pages: people answer a planned survey in their browser, on this machine.

`questions` is what is shown, `store` who sits where and what was answered (SQLite), `answers` reads what a browser
sends, `app`, `people` and `admin` are the pages, `server` the process. This package refuses to know how forms were
planned, what a majority is, and who anybody is: a person is a keyed hash from the first request on.
"""
