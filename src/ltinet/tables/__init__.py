"""Tables of samples: CSV and its relatives as loggers, spreadsheets and other programs write them.

Nothing here is guessed: what can be read in two ways is refused with the option that decides.
"""
