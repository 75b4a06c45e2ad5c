"""Tables of samples: CSV and related formats, as loggers, spreadsheets and other programs write them.

A table that can be read in more than one way is rejected with an error that names the deciding option.
"""
