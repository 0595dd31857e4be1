"""A survey's forms as others' tools take them, and answers as those tools give them.

Text and values in, text and values out; refuses to know what a majority is.
"""
