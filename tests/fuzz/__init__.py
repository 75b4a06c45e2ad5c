"""Damaged files by the thousand: nothing may kill the process, hang, raise a raw exception or load as something else.

`make fuzz` mutates valid files of every format, field by field as well as byte by byte, and loads each in a forked
child with a limit on memory and on time. What loads is compared with what an independent strict reader says.
"""
