"""A survey outside of our records: forms as others' tools take them, answers as those tools give them.

Text and values in, text and values out; refuses to know what a majority is.
"""
